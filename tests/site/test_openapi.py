"""The OpenAPI document and its page."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from tests.callers import caller, user_in


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


@pytest.mark.django_db
def test_the_docs_need_no_other_host_and_no_inline_script() -> None:
    browser = Client()
    browser.force_login(user_in("viewer"), backend="django.contrib.auth.backends.ModelBackend")
    response = browser.get("/api/docs/", headers={"Accept": "text/html"})
    text = response.content.decode()
    assert response.headers["Content-Type"].startswith("text/html")
    assert "https://" not in text.replace("https://www.w3.org", "")
    assert "<script>" not in text
    assert "<title>API docs · Runsight</title>" in text
    assert '<a href="/api/docs/" aria-current="page">API docs</a>' in text
    policy = response.headers["Content-Security-Policy"].split("; ")  # in any order
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "script-src 'self'" in policy
    script = browser.get("/api/docs/?script=")
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert "unsafe-inline" not in browser.get("/api/souls/").headers["Content-Security-Policy"]
