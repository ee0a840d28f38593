"""Reports of runs from elsewhere, broken: taken whole or not at all, and whatever was taken can be looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.api.test_ingest import YAML, report
from tests.factories import make_workflow
from tests.fuzz.doors import answer_of, api_client, browser_client, row_counts, taken_back
from tests.fuzz.effort import effort
from tests.fuzz.mutations import broken, broken_text, values
from workflows_app.models import Run, RunEvent, RunNode

pytestmark = pytest.mark.django_db
REPORT = report(
    version=1,
    environment="production",
    inputs={"text": "hello", "more": [1, {"a": None}]},
    started_at="2026-01-31T12:00:00Z",
    finished_at="2026-01-31T12:00:02Z",
    nodes=[
        {
            "node_id": "extract",
            "output": {"total": 3, "items": ["a", "b"]},
            "cost_usd": 0.01,
            "latency_ms": 12.5,
            "tokens": {"prompt": 5, "completion": 7, "total": 12},
            "soul_id": "a",
            "soul_version": "v7",
            "iteration": 1,
            "started_at": "2026-01-31T12:00:00Z",
            "finished_at": "2026-01-31T12:00:01Z",
        },
        {"node_id": "write", "error": {"type": "timeout", "message": "took too long"}},
    ],
)
TEXT = json.dumps(REPORT, indent=1)
RAW = broken_text(TEXT, faults=2).map(lambda text: text.encode(errors="surrogatepass"))
HEADERS = st.none() | st.text(st.characters(max_codepoint=255), max_size=8) | st.just("k" * 201)


@pytest.fixture
def doors() -> tuple[Any, Any]:
    make_workflow(YAML, "invoices")
    return api_client(), browser_client()


def deliver(doors: tuple[Any, Any], body: bytes, key: str | None = None) -> None:
    api = doors[0]
    headers = {} if key is None else {"HTTP_IDEMPOTENCY_KEY": key}
    with taken_back():
        before = row_counts()
        response = answer_of(
            api, "POST", "/api/runs/ingest/", data=body, content_type="application/json", **headers
        )
        if response.status_code >= 400:
            assert row_counts() == before
            assert response.json()["error"]["message"]
            return
        assert response.status_code == 201
        run = Run.objects.get()
        sent = json.loads(body)
        assert RunNode.objects.count() == len(sent["nodes"])
        assert list(RunEvent.objects.order_by("seq").values_list("seq", flat=True)) == list(
            range(1, run.last_seq + 1)
        )
        look_at(doors, run)


def look_at(doors: tuple[Any, Any], run: Run) -> None:
    api, browser = doors
    for path in ("", "nodes/", "events/", "eval/"):
        assert answer_of(api, "GET", f"/api/runs/{run.pk}/{path}").status_code == 200
    for path in ("workflows/invoices/trends/?range=all", "workflows/invoices/baseline/", "dashboard/"):
        assert answer_of(api, "GET", f"/api/{path}").status_code == 200
    for path in ("", "live/?part=all", "case.yaml", f"compare/{run.pk}/"):
        assert answer_of(browser, "GET", f"/runs/{run.pk}/{path}").status_code == 200
    for node in run.nodes.all()[:3]:
        answer_of(browser, "GET", f"/runs/{run.pk}/nodes/{node.pk}/case/")
        for path in (f"/runs/{run.pk}/nodes/{node.pk}/output.txt", f"/assertions/?node={node.pk}"):
            assert answer_of(browser, "GET", path).status_code == 200
    for path in ("/", "/runs/", "/runs/export.csv", "/runs/export.jsonl", "/workflows/invoices/?range=all"):
        assert answer_of(browser, "GET", path).status_code == 200


@effort(20)
@given(broken(REPORT), HEADERS)
def test_broken_report(doors: tuple[Any, Any], body: Any, key: str | None) -> None:
    deliver(doors, json.dumps(body).encode(), key)


@effort(15)
@given(RAW | st.binary(max_size=30))
def test_broken_body(doors: tuple[Any, Any], body: bytes) -> None:
    deliver(doors, body)


@effort(5)
@given(values, values, st.sampled_from(["completed", "failed", "cancelled"]))
def test_any_output(doors: tuple[Any, Any], output: Any, inputs: Any, status: str) -> None:
    nodes = [
        {"node_id": "extract", "output": output, "cost_usd": 1e-320},
        {"node_id": "write", "output": output},
    ]
    body = {**REPORT, "nodes": nodes, "inputs": {"any": inputs}, "status": status}
    deliver(doors, json.dumps(body).encode())
