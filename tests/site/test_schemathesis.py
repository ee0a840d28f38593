"""The OpenAPI document against the running server: no 5xx, and no answer that contradicts the document."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import positive_data_acceptance
from schemathesis.generation import GenerationMode

from evals_app.api.evaluation import EXAMPLE_INGEST
from tests.callers import authorization, caller
from tests.fuzz.effort import ASKED_FOR
from workflows_app.api.workflows import EXAMPLE_YAML

EXAMPLES = ASKED_FOR or 5
SECONDS = 60.0 * EXAMPLES / 5


@pytest.fixture
def document() -> dict[str, Any]:
    """The OpenAPI document as the site makes it."""
    from drf_spectacular.generators import SchemaGenerator

    return SchemaGenerator().get_schema(public=True)


def known_things(client: Any) -> dict[str, Any]:
    """Rows to find, by the name of the path parameter."""
    assert client.post("/api/workflows/", {"slug": "analysis", "yaml": EXAMPLE_YAML}).status_code == 201
    assert client.post("/api/souls/", {"slug": "analysis", "role": "Analyst"}).status_code == 201
    run = client.post("/api/runs/ingest/", EXAMPLE_INGEST).json()["id"]
    return {"slug": "analysis", "number": 1, "id": run}


def try_operation(
    operation: Any, mode: GenerationMode, known: dict[str, Any], base_url: str, key: str
) -> None:
    session = requests.Session()

    @seed(random.getrandbits(64) if ASKED_FOR else 20260131)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attempt(case: Any) -> None:
        if mode is GenerationMode.POSITIVE or operation.body:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = known.get(name, case.path_parameters[name])
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        if mode is GenerationMode.NEGATIVE and "" in (case.query or {}).values():
            reject()  # a filter left empty, as forms leave them, filters nothing; no document can say that
        case.call_and_validate(
            base_url=base_url,
            session=session,
            headers={"Authorization": key},
            excluded_checks=[positive_data_acceptance],  # a document knows no workflow's name
            timeout=20,
        )

    attempt()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_no_answer_contradicts_the_document(
    mode: GenerationMode, live_site: str, document: dict[str, Any]
) -> None:
    client = caller()
    known = known_things(client)
    key = authorization()
    deadline = time.monotonic() + SECONDS
    tried = []
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = result.ok()
        with contextlib.suppress(Unsatisfiable):  # a call without parameters cannot be made wrongly
            try_operation(operation, mode, known, live_site, key)
        tried.append(operation.label)
        assert time.monotonic() < deadline, f"only {len(tried)} operations in {SECONDS} s"
    assert len(tried) > 35
