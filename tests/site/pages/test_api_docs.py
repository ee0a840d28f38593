"""The OpenAPI document and its page."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from tests.callers import caller, user_in
from tests.html import squeezed


def test_the_document_is_valid_and_raises_no_warning(tmp_path) -> None:  # type: ignore[no-untyped-def]
    call_command(
        "spectacular", "--validate", "--fail-on-warn", file=str(tmp_path / "api.yaml"), stderr=StringIO()
    )
    assert "openapi: 3.1.0" in (tmp_path / "api.yaml").read_text()


@pytest.mark.django_db
def test_every_call_says_in_a_line_what_it_does() -> None:
    paths = caller("viewer").get("/api/schema/").json()["paths"]
    summaries = {
        (path, method): one["summary"] for path, item in paths.items() for method, one in item.items()
    }
    assert summaries["/api/evaluate/", "post"] == "Grade a text by assertions"
    assert all(0 < len(summary) < 100 for summary in summaries.values())


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
    text = squeezed(response)
    assert response.headers["Content-Type"].startswith("text/html")
    assert "https://" not in text.replace("https://www.w3.org", "")
    assert "<script>" not in text
    return text, response.headers["Content-Security-Policy"].split("; ")  # in any order


def test_the_docs_may_style_their_own_elements_and_no_other_page_may(browser: Client) -> None:
    text, policy = page_of(browser, "/api/docs/")
    assert "API docs · Runsight</title>" in text and 'href="/api/schema/" download' in text
    assert '<a href="/api/docs/" aria-current="page">API docs</a>' in text
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "script-src 'self'" in policy
    script = browser.get("/api/docs/?script=")
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert "unsafe-inline" not in browser.get("/api/souls/").headers["Content-Security-Policy"]
    assert browser.get("/api/docs/try/").headers["Location"] == "/api/docs/"


@pytest.mark.django_db
def test_every_fault_says_what_it_means() -> None:
    document = caller("viewer").get("/api/schema/").json()
    calls = [call for item in document["paths"].values() for call in item.values()]
    faults = {
        code: answer["description"]
        for call in calls
        for code, answer in call["responses"].items()
        if code >= "400"
    }
    assert {"400", "404", "409", "412", "422", "428", "429"} <= set(faults)
    assert "As asked." not in faults.values()
    assert document["tags"][0]["name"] == "workflows"
    assert {tag["name"] for tag in document["tags"]} <= {call["tags"][0] for call in calls}
