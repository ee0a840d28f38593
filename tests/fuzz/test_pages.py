"""Pages asked with addresses and forms nobody would type: an answer, never a fault of the server's."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.api.test_ingest import YAML
from tests.fuzz.doors import answer_of, taken_back
from tests.fuzz.effort import effort
from tests.fuzz.mutations import ODD_NUMBERS, keys, texts, values
from tests.site.access_table import API, PAGES

pytestmark = pytest.mark.django_db
# What pages and calls ask of an address, by how their paths begin: each tries its own first.
FILTERS = ["workflow", "status", "verdict", "source", "version", "number", "since", "until", "error"]
LISTS = ["cursor", "limit", "ordering", "fields"]
NAMES = {
    "runs/export": [*FILTERS, "sort"],
    "runs/compare": ["run"],
    "runs/<uuid:run_id>/": ["after", "all", "part", "changed", "id", "freeze"],
    "runs/": [*FILTERS, "sort", "after", "before"],
    "assertions/": ["node", "workflow", "block"],
    "workflows/<slug:slug>/run": ["version"],
    "workflows/<slug:slug>/": ["block", "metric", "range", "small", "blocks", "against"],
    "workflows/": ["q", "state", "after"],
    "souls/": ["q", "after"],
    "evals/": ["case", "part", "run"],
    "dashboard/": ["range"],
    "login/": ["next"],
    "api/workflows/<slug:slug>/trends": ["block", "metric", "range"],
    "api/runs/<uuid:pk>/events": ["after", "limit"],
    "api/runs/": [*LISTS, "workflow", "version", "status", "environment", "eval_passed", "created_after",
                  "created_before", "external_id", "parent_run"],
    "api/workflows/": [*LISTS, "enabled", "q", "search", "status", "version"],
    "api/regressions/": [*LISTS, "workflow", "node_id", "kind", "state"],
    "api/souls/": LISTS,
    "api/dashboard/": ["range", "limit"],
    "": ["range", "limit", "next", "format"],
}  # fmt: skip
SENSIBLE = [
    "score", "-score", "-cost", "started", "failed", "completed", "passed", "none", "7d", "all", "200", "1", "true",
    "extract", "invoices", "id,status", "-inputs", "-created_at", "created_at",
    "cD0yMDI2LTAxLTAx", "cD0x", "bz05OTk5OTk5OTk5", "cj0xJnA9MjAyNi0wMS0wMQ==", "bz0tMQ==", "cD0lMDA=",
]  # fmt: skip
STAMPS = ["1e999", "nan", "inf", "-1", "0.5", "2026-01-31T12:00:00+00:00", "0001-01-01T00:00:00+14:00",
          "9999-12-31T23:59:59-14:00", "2026-01-31", ""]  # fmt: skip
# Where faults have been: tried most often.
HOT = [
    "\0",
    "\ud800",
    "9999-12-31",
    "0001-01-01T00:00:00+14:00",
    "9" * 5000,
    str(2**63),
    "1e999",
    "nan",
    "٣",
    "²",
    "",
]
cursors = st.builds(
    lambda stamp, row: f"{stamp}~{row}",
    st.sampled_from(STAMPS),
    st.sampled_from([uuid4().hex, "0" * 32, "x", ""]),
)


def quote_all(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="")


api_cursors = st.builds(
    lambda kind, text: b64encode(f"{kind}={quote_all(text)}".encode()).decode(),
    st.sampled_from(["p", "o", "r=1&p"]),
    texts | st.sampled_from([*STAMPS, *HOT]),
)
asked = (
    st.sampled_from(HOT)
    | st.sampled_from(SENSIBLE)
    | texts
    | cursors
    | api_cursors
    | st.sampled_from([str(number) for number in ODD_NUMBERS])
)
# Parts of paths: what is there, what is not, and what cannot be.
slugs = st.sampled_from(["invoices", "shout", "a", "nobody", "x" * 300, "-", "_"])
numbers = st.sampled_from(["0", "1", "2", str(2**31), str(2**63), str(10**30), "9" * 5000])
FORMS = [route for route, row in PAGES.items() if "POST" in row and not route.startswith(("login", "logout"))]
FIELDS = {
    "yaml": YAML, "slug": "another", "message": "why", "based_on": "1", "then": "run", "action": "backtest",
    "workflow": "invoices", "block": "extract", "assertions": "- {type: contains, value: a}", "output": "abc",
    "limit": "10", "cost_usd": "0.5", "latency_ms": "3", "input-text": "hello", "inputs": '{"a": 1}', "json": "{}",
    "simulation": "1", "version": "1", "run": "1", "id": "a-case", "freeze": "1", "next": "/runs/", "repeats": "2",
}  # fmt: skip


@st.composite
def paths(draw: Any, routes: list[str]) -> str:
    """A path of the table; `{run}` and `{node}` are filled in later."""
    route: str = draw(st.sampled_from(routes))
    uuids = st.sampled_from(["{run}", "{run}", str(uuid4())])
    ids = st.sampled_from(["{node}", "{node}"]) | numbers
    stand_ins = {
        "<slug:slug>": slugs,
        "<int:number>": numbers,
        "<int:pk>": ids,
        "<str:token>": texts.map(lambda text: quote_all(text) or "-"),
    }
    for parameter, strategy in stand_ins.items():
        while parameter in route:
            route = route.replace(parameter, draw(strategy), 1)
    for parameter in ("<uuid:pk>", "<uuid:run_id>", "<uuid:other_id>"):
        route = route.replace(parameter, draw(uuids))
    return "/" + route


def written(query: list[tuple[str, str]]) -> str:
    """A query string; halves of surrogates travel as the bytes they would be."""
    return "&".join(f"{quote_all(name)}={quote_all(value)}" for name, value in query)


def filled(path: str, site: dict[str, Any]) -> str:
    return path.replace("{run}", site["run"]).replace("{node}", site["node"])


@st.composite
def requests_of(draw: Any, routes: list[str]) -> tuple[str, list[tuple[str, str]]]:
    """A path, and what it asks for."""
    route = draw(st.sampled_from(routes))
    own = next(names for prefix, names in NAMES.items() if route.startswith(prefix))
    query = draw(st.lists(st.tuples(st.sampled_from(own), asked), max_size=3))
    if draw(st.booleans()):
        query.append((draw(keys), draw(asked)))
    return draw(paths([route])), query


def ask(site: dict[str, Any], door: str, request: tuple[str, list[tuple[str, str]]]) -> Any:
    path, query = request
    return answer_of(site[door], "GET", filled(path, site), QUERY_STRING=written(query))


@effort(80)
@given(requests_of([route for route, row in PAGES.items() if "GET" in row and route != "styleguide/"]))
def test_any_address(site: dict[str, Any], request_: Any) -> None:
    ask(site, "pages", request_)


@effort(60)
@given(requests_of([route for route, row in API.items() if "GET" in row and "schema" not in route]))
def test_any_call(site: dict[str, Any], request_: Any) -> None:
    response = ask(site, "api", request_)
    if response.status_code >= 400 and response["Content-Type"].startswith("application/json"):
        assert response.json()["error"]["message"]


posted = (
    texts
    | st.sampled_from(HOT)
    | values.map(json.dumps)
    | st.sampled_from([str(number) for number in ODD_NUMBERS])
)


@effort(40)
@given(
    paths(FORMS),
    st.dictionaries(st.sampled_from(sorted(FIELDS)) | keys, posted, max_size=4),
    st.sets(st.sampled_from(sorted(FIELDS)), max_size=3),
)
def test_any_form(site: dict[str, Any], path: str, changed: dict[str, str], gone: set[str]) -> None:
    form = {name: value for name, value in {**FIELDS, **changed}.items() if name not in gone}
    form = {
        name.encode(errors="surrogatepass"): value.encode(errors="surrogatepass")
        for name, value in form.items()
    }
    with taken_back():
        answer_of(
            site["pages"],
            "POST",
            filled(path, site),
            data=urlencode(form),
            content_type="application/x-www-form-urlencoded",
        )
