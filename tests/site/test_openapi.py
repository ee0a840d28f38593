"""The OpenAPI document and its page."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from runsight_site.api_reference import Type, reference, type_of
from tests.callers import caller, user_in
from tests.weights import weight


def test_the_document_is_valid_and_raises_no_warning(tmp_path) -> None:  # type: ignore[no-untyped-def]
    call_command(
        "spectacular", "--validate", "--fail-on-warn", file=str(tmp_path / "api.yaml"), stderr=StringIO()
    )
    assert "openapi: 3.1.0" in (tmp_path / "api.yaml").read_text()


@pytest.mark.django_db
def test_every_call_says_in_a_line_what_it_does() -> None:
    paths = caller("viewer").get("/api/schema/").json()["paths"]
    told = {(path, method): one["summary"] for path, item in paths.items() for method, one in item.items()}
    assert told["/api/evaluate/", "post"] == "Grade a text by assertions"
    assert all(0 < len(summary) < 100 for summary in told.values())


@pytest.mark.django_db
def test_main_calls_have_examples() -> None:
    document = caller("viewer").get("/api/schema/").json()
    for path, method in [
        ("/api/workflows/", "post"),
        ("/api/workflows/{slug}/runs/", "post"),
        ("/api/runs/ingest/", "post"),
        ("/api/evaluate/", "post"),
        ("/api/evaluate/backtest/", "post"),
    ]:
        content = document["paths"][path][method]["requestBody"]["content"]["application/json"]
        assert content["examples"], path


@pytest.fixture
def browser(db: None) -> Client:
    found = Client()
    found.force_login(user_in("viewer"), backend="django.contrib.auth.backends.ModelBackend")
    return found


def page_of(browser: Client, path: str) -> tuple[str, list[str]]:
    """The text of a page that needs no other host and no inline script, and the parts of its policy."""
    response = browser.get(path, headers={"Accept": "text/html"})
    text = response.content.decode()
    assert response.headers["Content-Type"].startswith("text/html")
    assert "https://" not in text.replace("https://www.w3.org", "")
    assert "<script>" not in text
    return text, response.headers["Content-Security-Policy"].split("; ")  # in any order


def test_the_docs_tell_every_call_and_every_shape(browser: Client) -> None:
    text, policy = page_of(browser, "/api/docs/")
    assert "<title>API docs · Runsight</title>" in text
    assert '<a href="/api/docs/" aria-current="page">API docs</a>' in text
    assert "style-src 'self'" in policy and "script-src 'self'" in policy
    document = browser.get("/api/schema/").json()
    for path, item in document["paths"].items():
        assert f'<code class="call__path">{path}</code>' in text
        for call in item.values():
            assert f'id="{call["operationId"]}"' in text
    for name in document["components"]["schemas"]:
        assert f'id="shape-{name}"' in text
    assert set(re.findall(r'href="#(shape-\w+)"', text)) <= set(re.findall(r'id="(shape-\w+)"', text))
    assert weight(browser, "/api/docs/") < 200_000


def test_the_explorer_may_style_its_own_elements_and_nothing_else_may(browser: Client) -> None:
    text, policy = page_of(browser, "/api/docs/try/")
    assert "<title>Try the API · Runsight</title>" in text
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "script-src 'self'" in policy
    script = browser.get("/api/docs/try/?script=")
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert "unsafe-inline" not in browser.get("/api/souls/").headers["Content-Security-Policy"]


def test_every_fault_says_what_it_means() -> None:
    faults = reference().faults
    assert {"400", "404", "409", "412", "422", "428", "429"} <= set(faults)
    assert "As asked." not in faults.values()
    assert next(iter(reference().groups)) == "workflows"


TYPES = [
    # schema, in words, shape
    ({"type": "string"}, "text", ""),
    ({"type": ["string", "null"], "format": "date-time"}, "time or null", ""),
    ({"type": "array", "items": {"$ref": "#/components/schemas/Run"}}, "list of Run", "Run"),
    ({"allOf": [{"$ref": "#/components/schemas/Tokens"}], "readOnly": True}, "Tokens", "Tokens"),
    ({"oneOf": [{"$ref": "#/components/schemas/Kind"}, {"type": "null"}]}, "Kind or null", "Kind"),
    ({"enum": ["open", None, 3]}, "open | null | 3", ""),
    ({}, "any value", ""),
]


@pytest.mark.parametrize(("schema", "words", "shape"), TYPES)
def test_a_type_is_told_in_words(schema: dict[str, Any], words: str, shape: str) -> None:
    assert type_of(schema) == Type(words, shape)
