"""Bodies and headers of every call that writes: a 4xx wrote nothing, and nothing is a fault of the server's."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.api.test_ingest import YAML, report
from tests.fuzz.doors import answer_of, row_counts, taken_back
from tests.fuzz.effort import effort
from tests.fuzz.mutations import ODD_TEXTS, broken, broken_text
from tests.site.access_table import API
from workflows_app.api.workflows import EXAMPLE_YAML

pytestmark = pytest.mark.django_db
ASSERTIONS = [{"type": "contains", "value": "a"}, {"type": "cost", "threshold": 0.1}]
SOUL = {
    "role": "Analyst",
    "system_prompt": "You analyse.",
    "provider": "demo",
    "model_name": "demo-small",
    "temperature": 0.2,
}
# A body that each call takes, by method and path.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "api/workflows/"): {"slug": "another", "yaml": EXAMPLE_YAML, "message": "why", "enabled": True},
    ("POST", "api/workflows/validate/"): {"yaml": EXAMPLE_YAML},
    ("PUT", "api/workflows/<slug:slug>/"): {"yaml": YAML + "# changed\n", "message": "why", "enabled": True},
    ("PATCH", "api/workflows/<slug:slug>/"): {"enabled": False},
    ("POST", "api/workflows/<slug:slug>/validate/"): {"yaml": YAML},
    ("POST", "api/workflows/<slug:slug>/runs/"): {"inputs": {"a": [1, "b"]}, "environment": "simulation", "version": 1},
    ("PUT", "api/workflows/<slug:slug>/baseline/"): {"version": 1},
    ("DELETE", "api/workflows/<slug:slug>/baseline/"): {},
    ("POST", "api/runs/ingest/"): report(external_id="new"),
    ("POST", "api/runs/<uuid:pk>/cancel/"): {},
    ("POST", "api/runs/<uuid:pk>/rerun/"): {},
    ("POST", "api/souls/"): {"slug": "analyst", **SOUL},
    ("PUT", "api/souls/<slug:slug>/"): {"slug": "invoices", **SOUL},
    ("PATCH", "api/souls/<slug:slug>/"): {"temperature": 1.5},
    ("POST", "api/evaluate/"): {"output": "a", "assertions": ASSERTIONS, "context": {"cost_usd": 0.01, "variables": {"a": 1}}},
    ("POST", "api/evaluate/backtest/"): {"workflow": "invoices", "block": "extract", "assertions": ASSERTIONS, "limit": 9},
    ("POST", "api/regressions/<uuid:pk>/acknowledge/"): {},
    ("POST", "api/regressions/<uuid:pk>/resolve/"): {},
}  # fmt: skip
odd_headers = st.sampled_from(
    [text for text in ODD_TEXTS if text.isprintable() and text.encode(errors="replace").isascii()]
) | st.text(st.characters(max_codepoint=255), max_size=12)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["If-Match", "If-None-Match", "Idempotency-Key", "Accept", "X-Request-ID", "Content-Encoding", "Range",
         "Accept-Language", "Cookie", "Host-Override", "X-HTTP-Method-Override", "If-Modified-Since"]
    ),
    odd_headers,
    max_size=3,
)  # fmt: skip
TYPES = st.sampled_from(
    ["application/json"] * 6
    + ["application/json; charset=utf-16", "application/json; charset=nonsense", "multipart/form-data",
       "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/yaml", "", "a" * 300, "/;=;"]
)  # fmt: skip


@st.composite
def calls(draw: Any) -> tuple[str, str, bytes]:
    """A call of the table with its body, broken in its structure or in its text."""
    method, route = draw(st.sampled_from(sorted(BODIES)))
    body = BODIES[(method, route)]
    if draw(st.integers(0, 3)):
        raw = json.dumps(draw(broken(body))).encode()
    else:
        raw = draw(broken_text(json.dumps(body, indent=1))).encode(errors="surrogatepass")
    return method, route, raw


def test_every_call_that_writes_has_a_body_here() -> None:
    writing = {(method, route) for route, row in API.items() for method in row if method != "GET"}
    assert writing == BODIES.keys()


def path_of(route: str, run: str) -> str:
    found = run if "regressions" not in route else str(uuid4())
    return "/" + route.replace("<slug:slug>", "invoices").replace("<uuid:pk>", found)


@effort(80)
@given(calls(), HEADERS, TYPES, st.booleans())
def test_any_body(
    site: dict[str, Any], call: tuple[str, str, bytes], headers: dict[str, str], kind: str, is_current: bool
) -> None:
    method, route, body = call
    sent = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    if is_current:
        sent["HTTP_IF_MATCH"] = "*"
    with taken_back():
        before = row_counts()
        response = answer_of(
            site["api"], method, path_of(route, site["run"]), data=body, content_type=kind, **sent
        )
        if response.status_code >= 400:
            assert row_counts() == before
            assert response.json()["error"]["message"]


@pytest.mark.parametrize(("method", "route"), sorted(BODIES))
def test_the_bodies_that_are_broken_were_whole(method: str, route: str, site: dict[str, Any]) -> None:
    response = answer_of(
        site["api"], method, path_of(route, site["run"]), data=json.dumps(BODIES[(method, route)]),
        content_type="application/json", HTTP_IF_MATCH="*",
    )  # fmt: skip
    # What was whole is taken, or refused for a reason that is not in the body.
    assert response.status_code in (200, 201, 202, 204, 404 if "regressions" in route else 200, 409)
