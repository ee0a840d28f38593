"""Pages asked with addresses and forms nobody would type: an answer, never a fault of the server's."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.test_api_ingest import YAML
from tests.fuzz.doors import answer_of, taken_back
from tests.fuzz.effort import effort
from tests.fuzz.mutations import ODD_NUMBERS, keys, texts, values
from tests.site.access_table import API, PAGES

pytestmark = [pytest.mark.storage, pytest.mark.django_db]
# What pages and calls ask of an address; each is tried everywhere.
NAMES = [
    "after", "before", "sort", "workflow", "status", "verdict", "source", "version", "number", "since", "until",
    "error", "range", "metric", "block", "blocks", "small", "against", "changed", "part", "all", "case", "run",
    "node", "q", "state", "next", "cursor", "limit", "ordering", "fields", "wait", "environment", "node_id", "kind",
    "created_after", "created_before", "enabled", "external_id", "parent_run", "eval_passed", "iteration", "format",
]  # fmt: skip
SENSIBLE = [
    "score", "-score", "-cost", "started", "failed", "completed", "passed", "none", "7d", "all", "200", "1", "true",
    "extract", "invoices", "id,status", "-inputs", "-created_at", "created_at",
    "cD0yMDI2LTAxLTAx", "cD0x", "bz05OTk5OTk5OTk5", "cj0xJnA9MjAyNi0wMS0wMQ==", "bz0tMQ==", "cD0lMDA=",
]  # fmt: skip
STAMPS = ["1e999", "nan", "inf", "-1", "0.5", "2026-01-31T12:00:00+00:00", "0001-01-01T00:00:00+14:00",
          "9999-12-31T23:59:59-14:00", "2026-01-31", ""]  # fmt: skip
cursors = st.builds(
    lambda stamp, row: f"{stamp}~{row}",
    st.sampled_from(STAMPS),
    st.sampled_from([uuid4().hex, "0" * 32, "x", ""]),
)
asked = st.sampled_from(SENSIBLE) | texts | cursors | st.sampled_from([str(number) for number in ODD_NUMBERS])
queries = st.lists(st.tuples(st.sampled_from(NAMES) | keys, asked), max_size=6)
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
        "<str:token>": texts.map(quote_all),
    }
    for parameter, strategy in stand_ins.items():
        while parameter in route:
            route = route.replace(parameter, draw(strategy), 1)
    for parameter in ("<uuid:pk>", "<uuid:run_id>", "<uuid:other_id>"):
        route = route.replace(parameter, draw(uuids))
    return "/" + route


def quote_all(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="") or "-"


def written(query: list[tuple[str, str]]) -> str:
    """A query string; halves of surrogates travel as the bytes they would be."""
    return "&".join(f"{quote_all(name)}={quote_all(value)}" for name, value in query)


def filled(path: str, site: dict[str, Any]) -> str:
    return path.replace("{run}", site["run"]).replace("{node}", site["node"])


def ask(site: dict[str, Any], door: str, path: str, query: list[tuple[str, str]]) -> Any:
    client = site[door]
    return answer_of(client, "GET", filled(path, site), QUERY_STRING=written(query))


@effort(150)
@given(paths([route for route, row in PAGES.items() if "GET" in row and route != "styleguide/"]), queries)
def test_any_address(site: dict[str, Any], path: str, query: list[tuple[str, str]]) -> None:
    ask(site, "pages", path, query)


@effort(120)
@given(paths([route for route, row in API.items() if "GET" in row and "schema" not in route]), queries)
def test_any_call(site: dict[str, Any], path: str, query: list[tuple[str, str]]) -> None:
    response = ask(site, "api", path, [pair for pair in query if pair[0] != "wait"])
    if response.status_code >= 400 and response["Content-Type"].startswith("application/json"):
        assert response.json()["error"]["message"]


@effort(100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["since", "until", "version", "number", "error", "workflow", "after", "before"]),
            asked,
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["", "-score", "cost", "started"]),
    st.sampled_from(["/runs/", "/runs/", "/runs/export.csv", "/runs/export.jsonl"]),
)
def test_any_filter_of_runs(site: dict[str, Any], query: list[tuple[str, str]], sort: str, path: str) -> None:
    ask(site, "pages", path, [*query, ("sort", sort)])


posted = texts | values.map(json.dumps) | st.sampled_from([str(number) for number in ODD_NUMBERS])


@effort(80)
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
