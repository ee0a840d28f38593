"""Trends, baselines, regressions, dashboard, evaluate and backtest over the API."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F

from evals_app.models import Observation, Regression, RegressionKind, RegressionState
from evals_app.monitoring.regressions import sentence
from evals_app.monitoring.trends import Seen, metrics_of, thin
from tests.callers import caller, queries_of
from tests.evals.api.test_ingest import YAML, report
from tests.evals.histories import add_history, add_regression
from tests.factories import make_workflow
from workflows_app.models import Run, Workflow
from workflows_app.services import save_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Any:
    """An admin's client, after six runs of which the fourth failed its assertions."""
    make_workflow(YAML, "invoices")
    client = caller("admin")
    for index in range(6):
        output = "no json" if index == 3 else "{}"
        nodes = [{"node_id": "extract", "output": output, "cost_usd": 0.005 * (index + 1)}]
        assert (
            client.post("/api/runs/ingest/", report(external_id=str(index), nodes=nodes)).status_code == 201
        )
    return client


def make_regressions(count: int) -> list[Regression]:
    workflow = Workflow.objects.get()
    level = {"count": 20, "mean": 0.9}
    return [
        Regression.objects.create(
            workflow=workflow, node_id=f"b{index}", kind=RegressionKind.QUALITY, since_number=1,
            before=level, after=level, evidence=index,
        )
        for index in range(count)
    ]  # fmt: skip


@pytest.mark.storage
def test_a_trend_has_a_point_for_every_run(client: Any) -> None:
    trend = client.get("/api/workflows/invoices/trends/?block=extract").json()
    assert trend.keys() == {"block", "metric", "points", "baseline", "versions", "regressions"}
    assert [point["value"] for point in trend["points"]] == [1.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    assert [point["passed"] for point in trend["points"]] == [True, True, True, False, True, True]
    assert trend["points"][0].keys() == {"run", "number", "at", "version", "value", "passed"}
    assert trend["baseline"].keys() == {"count", "mean", "low", "high"}
    assert [mark["number"] for mark in trend["versions"]] == [1]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("metric=cost&range=2", [0.025, 0.03]),
        ("metric=pass_rate&range=all", [1.0, 1.0, 1.0, 0.75, 0.8, pytest.approx(5 / 6)]),
        ("range=24h", [1.0, 1.0, 1.0, 0.5, 1.0, 1.0]),
    ],
)
@pytest.mark.storage
def test_metrics_and_ranges(query: str, values: list[Any], client: Any) -> None:
    for block in ("block=extract&", ""):
        points = client.get(f"/api/workflows/invoices/trends/?{block}{query}").json()["points"]
        assert [point["value"] for point in points] == values


@pytest.mark.parametrize("block", ["block=shout&", ""])
@pytest.mark.storage
def test_a_pass_rate_is_the_same_in_every_range(block: str) -> None:
    workflow = make_workflow()
    add_history(workflow, [1.0, 0.5, 1.0, 1.0, 0.5] * 10)
    Observation.objects.filter(number__in=(30, 38)).update(passed=None)  # not graded
    client = caller("viewer")
    rates = {}
    for range_ in ("all", "24h", "10", "3", "1"):
        points = client.get(f"/api/workflows/shout/trends/?{block}metric=pass_rate&range={range_}").json()[
            "points"
        ]
        rates[range_] = [point["value"] for point in points]
    assert len(rates["3"]) == 3 and rates["all"][-1] == 0.6
    assert all(found == rates["all"][-len(found) :] for found in rates.values())


@pytest.mark.storage
def test_a_block_has_a_baseline_of_its_pass_rate_and_its_named_metrics() -> None:
    workflow = make_workflow()
    runs = add_history(workflow, [1.0] * 30 + [0.5] * 20)
    Observation.objects.filter(number__lte=30).update(named_scores={"tone": 0.75})
    client = caller("admin")

    def found(metric: str) -> Any:
        return client.get(f"/api/workflows/shout/trends/?block=shout&metric={metric}").json()["baseline"]

    Regression.objects.all().delete()
    assert found("pass_rate") == {"count": 50, "mean": 0.6, "low": None, "high": None}
    assert found("tone") == {"count": 30, "mean": 0.75, "low": 0.75, "high": 0.75}
    add_regression(runs[-1], kind="latency_spike", since_number=5)
    assert found("pass_rate")["mean"] == 0.6  # says nothing about what passes
    add_regression(runs[-1], since_number=31)
    assert found("pass_rate") == {"count": 30, "mean": 1.0, "low": None, "high": None}
    client.put("/api/workflows/shout/baseline/", {"run": runs[-1].pk})
    assert found("pass_rate") == {"count": 1, "mean": 0.0, "low": None, "high": None}
    client.put("/api/workflows/shout/baseline/", {"version": 1})
    assert found("pass_rate") == {"count": 50, "mean": 0.6, "low": None, "high": None}


def baseline(client: Any, query: str = "") -> Any:
    return client.get(f"/api/workflows/invoices/trends/?{query}").json()["baseline"]


@pytest.mark.storage
def test_the_whole_workflow_has_a_baseline_of_its_runs_whatever_the_range(client: Any) -> None:
    found = baseline(client)
    assert found == {"count": 6, "mean": pytest.approx(11 / 12), "low": None, "high": None}
    assert baseline(client, "range=2") == found
    assert baseline(client, "metric=cost")["mean"] == pytest.approx(0.0175)
    assert baseline(client, "metric=pass_rate")["mean"] == pytest.approx(5 / 6)
    client.put("/api/workflows/invoices/baseline/", {"run": Run.objects.get(number=4).pk})
    assert baseline(client) == {"count": 1, "mean": 0.5, "low": None, "high": None}


@pytest.mark.storage
def test_the_baseline_of_a_whole_workflow_stays_what_it_was_before_an_open_regression(client: Any) -> None:
    (regression,) = make_regressions(1)
    Regression.objects.update(since_run_number=4)
    assert baseline(client)["count"] == 3
    assert baseline(client)["mean"] == 1.0
    Regression.objects.filter(pk=regression.pk).update(state=RegressionState.RESOLVED)
    assert baseline(client)["count"] == 6


def test_only_what_is_worse_about_a_metric_holds_the_baseline_of_a_whole_workflow(client: Any) -> None:
    make_regressions(1)
    Regression.objects.update(since_run_number=4, kind=RegressionKind.LATENCY)
    assert baseline(client)["count"] == baseline(client, "metric=cost")["count"] == 6
    Regression.objects.update(kind=RegressionKind.COST)
    assert baseline(client)["count"] == 6
    assert baseline(client, "metric=cost")["count"] == 3


MEASURED = "score, pass_rate, cost, latency, tokens"
NAMED = """\
version: "1.0"
blocks:
  one:
    type: code
    code: "def main(data): return 1"
    assertions:
      - {type: contains, value: ok, metric: tone}
      - {type: contains, value: o, metric: clear}
  two:
    type: code
    code: "def main(data): return 1"
    assertions:
      - {type: contains, value: k, metric: tone}
"""


@pytest.fixture
def named() -> Any:
    """An admin's client, after three runs of two blocks that have a metric in common; the newest version dropped it."""
    make_workflow(NAMED, "invoices")
    client = caller("admin")
    outputs = [("ok", "ok"), ("ok", "no"), ("ok", "ok")]
    for index, (one, two) in enumerate(outputs):
        if index == 2:
            save_version("invoices", NAMED.replace(", metric: tone", ""))
        nodes = [{"node_id": "one", "output": one}, {"node_id": "two", "output": two}]
        sent = report(external_id=str(index), nodes=nodes)
        assert client.post("/api/runs/ingest/", sent).status_code == 201
    return client


@pytest.mark.storage
def test_a_named_metric_of_a_whole_workflow_is_the_mean_of_the_blocks_that_have_it(named: Any) -> None:
    found = named.get("/api/workflows/invoices/trends/?metric=tone").json()
    assert [point["value"] for point in found["points"]] == [1.0, 0.5, None]
    assert found["baseline"] == {"count": 2, "mean": 0.75, "low": None, "high": None}
    found = named.get("/api/workflows/invoices/trends/?metric=clear").json()
    assert [point["value"] for point in found["points"]] == [1.0, 1.0, 1.0]


@pytest.mark.storage
def test_metrics_that_lately_were_named_can_be_picked(named: Any) -> None:
    workflow = Workflow.objects.get()
    measured = MEASURED.split(", ")
    assert metrics_of(workflow, "") == metrics_of(workflow, "one") == [*measured, "clear", "tone"]
    assert metrics_of(workflow, "two") == [*measured, "tone"]
    Observation.objects.update(number=F("number") + 200, run_number=F("run_number") + 200)
    Observation.objects.filter(number__lt=203).update(
        run_number=F("run_number") - 100, number=F("number") - 100
    )
    assert metrics_of(workflow, "") == metrics_of(workflow, "one") == [*measured, "clear"]
    assert metrics_of(workflow, "two") == measured


@pytest.mark.parametrize(
    ("query", "place", "message"),
    [
        ("metric=bogus", "metric", f"'bogus' is no metric of invoices; use one of {MEASURED}, clear, tone."),
        ("metric=bogus&block=two", "metric", f"'bogus' is no metric of two; use one of {MEASURED}, tone."),
        ("block=nobody", "block", "invoices has no block 'nobody'; its blocks are one, two."),
        ("range=ages", "range", "'ages' is no range; use one of 24h, 7d, 30d, 90d, all."),
    ],
)
def test_an_unknown_metric_block_or_range_is_a_fault_that_lists_what_would_do(
    query: str, place: str, message: str, named: Any
) -> None:
    response = named.get(f"/api/workflows/invoices/trends/?{query}")
    assert response.status_code == 400
    assert response.json()["error"] == {
        "code": "invalid",
        "message": f"{place}: {message}",
        "details": [{"path": place, "line": None, "message": message}],
    }


def test_a_metric_of_another_block_or_of_a_while_ago_is_no_fault(named: Any) -> None:
    path = "/api/workflows/invoices/trends/"
    for query in ("block=two&metric=clear", "block=two&metric=tone&range=1"):
        points = named.get(f"{path}?{query}").json()["points"]
        assert {point["value"] for point in points} == {None}, query
    Observation.objects.filter(named_scores={}).update(number=1_000, run_number=1_000)
    assert "tone" not in metrics_of(Workflow.objects.get(), "two")
    assert named.get(f"{path}?metric=tone&range=50").status_code == 200  # drawn by a longer range


@pytest.mark.parametrize("range_", ["0", "1y", "-5", "99999999999", "٣"])
def test_a_range_nobody_can_read_is_refused(range_: str, client: Any) -> None:
    assert client.get(f"/api/workflows/invoices/trends/?block=extract&range={range_}").status_code == 400


def test_thinning_keeps_ends_and_extremes() -> None:
    seen = [Seen(number, 0.0 if number == 777 else 1.0, 1) for number in range(1, 100_001)]
    kept = thin(seen, 500)
    assert len(kept) <= 500
    assert {1, 777, 100_000} <= kept.keys()


def test_pinning_a_baseline_and_going_back(client: Any) -> None:
    path = "/api/workflows/invoices/baseline/"
    assert client.get(path).json()["pinned"] is None
    pinned = client.put(path, {"version": 1}).json()
    assert (pinned["pinned"]["version"], pinned["pinned"]["by"]) == (1, "admin")
    assert client.delete(path).json()["pinned"] is None
    for body in ({}, {"version": 9}, {"version": 1, "run": "00000000-0000-4000-8000-000000000000"}):
        assert client.put(path, body).status_code == 400


def test_only_what_was_observed_can_be_pinned(client: Any) -> None:
    path = "/api/workflows/invoices/baseline/"
    tried = client.post("/api/runs/ingest/", report(external_id="try", environment="simulation")).json()
    save_version("invoices", YAML + "# never run\n")
    for body, place in (({"run": tried["id"]}, "run"), ({"version": 2}, "version")):
        response = client.put(path, body)
        assert response.status_code == 400
        assert response.json()["error"]["details"][0]["path"] == place
    assert client.get(path).json()["pinned"] is None


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ({"count": 9, "mean": 0.25}, "cost was $0.2500,"),
        ({"count": 9, "mean": 2.5}, "cost was $2.50,"),
        ({"count": 9, "mean": 812.0, "unit": "tokens"}, "cost was 812 tokens,"),
        ({"count": 9, "mean": 0.00002}, "cost was $0.000020,"),
        ({"count": 9, "mean": 0.00022905}, "cost was $0.00023,"),
    ],
)
def test_a_cost_is_shown_in_dollars_unless_tokens_stand_in(level: dict[str, Any], expected: str) -> None:
    regression = Regression(
        workflow=Workflow(slug="w"), node_id="b", kind=RegressionKind.COST, before=level, after=level
    )
    assert expected in sentence(regression)


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        (RegressionKind.QUALITY, 0.998, 0.74, "score was 0.99, now 0.74 since"),
        (RegressionKind.QUALITY, 0.998, 0.996, "score was 0.998, now 0.996 since"),
        (RegressionKind.LATENCY, 1200, 61234, "took 1.2 s, now 1 min 1 s since"),
        (RegressionKind.LATENCY, 61234, 61345, "took 61.2 s, now 61.3 s since"),
        (RegressionKind.ASSERTION, 0.996, 0.61, "passed 99.6%, now 61% since"),
        (RegressionKind.ASSERTION, 0.612, 0.608, "passed 61.2%, now 60.8% since"),
        (RegressionKind.COST, 0.5, 0.50002, "cost was $0.50000, now $0.50002 since"),
    ],
)
def test_a_sentence_reads_as_figures_do(kind: str, before: float, after: float, expected: str) -> None:
    levels = {"before": {"count": 9, "mean": before}, "after": {"count": 9, "mean": after}}
    workflow = Workflow(slug="w")
    regression = Regression(workflow=workflow, node_id="b", kind=kind, assertion="contains#1", **levels)
    assert expected in sentence(regression)


def test_long_names_are_shortened_in_a_sentence() -> None:
    level = {"count": 9, "mean": 0.5}
    regression = Regression(workflow=Workflow(slug="s" * 200), node_id="n" * 200,
                            kind=RegressionKind.QUALITY, before=level, after=level,
                            suspected={"workflow_version": None, "soul_version": "v" * 100})  # fmt: skip
    assert len(sentence(regression)) < 300


@pytest.mark.storage
def test_regressions_are_handled_once(client: Any) -> None:
    (regression,) = make_regressions(1)
    path = f"/api/regressions/{regression.pk}/"
    fields = {"id", "workflow", "node_id", "kind", "assertion", "state", "since_run", "found_run", "suspected",
            "before", "after", "evidence"}  # fmt: skip
    assert fields <= client.get(path).json().keys()
    assert client.post(path + "acknowledge/").json()["state"] == "acknowledged"
    assert client.post(path + "acknowledge/").status_code == 200
    assert client.post(path + "resolve/").json()["state"] == "resolved"
    assert client.post(path + "acknowledge/").status_code == 409
    assert client.get("/api/regressions/?state=open").json()["results"] == []


@pytest.mark.storage
def test_regressions_have_uuids_and_come_newest_first(client: Any) -> None:
    made = make_regressions(3)
    pages = [client.get("/api/regressions/?limit=2").json()]
    pages.append(client.get(pages[0]["next"]).json())
    ids = [found["id"] for page in pages for found in page["results"]]
    assert ids == [str(regression.pk) for regression in reversed(made)]
    assert all(UUID(one).version == 4 for one in ids)
    assert client.get("/api/regressions/1/").status_code == 404


@pytest.mark.storage
def test_the_dashboard_counts_what_happened(client: Any) -> None:
    body = client.get("/api/dashboard/?range=7d").json()
    assert body.keys() == {"range", "pass_rate", "mean_score", "cost_usd", "runs", "running", "attention"}
    assert body["runs"]["value"] == sum(body["runs"]["series"]) == 6
    assert body["pass_rate"]["value"] == pytest.approx(5 / 6, abs=1e-5)
    assert body["mean_score"]["value"] == pytest.approx(5.5 / 6, abs=1e-5)
    assert body["cost_usd"]["value"] == pytest.approx(0.105)
    assert body["runs"]["previous"] == 0
    assert client.get("/api/dashboard/?range=all").status_code == 400


@pytest.mark.storage
def test_attention_comes_by_evidence_with_its_sentence(client: Any) -> None:
    make_regressions(3)
    found = client.get("/api/dashboard/attention/").json()["results"]
    assert [item["node_id"] for item in found] == ["b2", "b1", "b0"]
    assert found[0]["sentence"].startswith("`b2` in invoices: score was 0.90")


@pytest.mark.parametrize(
    "path",
    [
        "/api/regressions/",
        "/api/workflows/invoices/regressions/",
        "/api/dashboard/",
        "/api/dashboard/attention/",
        "/api/workflows/invoices/trends/?block=extract",
        "/api/workflows/invoices/trends/",
        "/api/workflows/invoices/baseline/",
    ],
)
def test_reads_cost_the_same_for_any_number_of_rows(path: str, client: Any) -> None:
    make_regressions(1)
    before = queries_of(client, path)
    Regression.objects.all().delete()
    make_regressions(20)
    for index in range(10, 20):
        client.post(
            "/api/runs/ingest/",
            report(external_id=str(index), nodes=[{"node_id": "extract", "output": "{}"}]),
        )
    assert queries_of(client, path) == before


def test_evaluating_stores_nothing_and_names_what_is_wrong() -> None:
    body = {
        "output": "Total: 12",
        "assertions": [
            {"type": "contains", "value": "Total"},
            {"type": "contians"},
            {"type": "cost", "threshold": 1},
        ],
        "context": {"cost_usd": 0.5},
    }
    answer = caller("viewer").post("/api/evaluate/", body).json()
    assert {"score", "passed", "assertions", "named_scores"} <= answer.keys()
    assert [(one["passed"], one["error"]) for one in answer["assertions"]] == [
        (True, False), (False, True), (True, False),
    ]  # fmt: skip


def test_a_backtest_says_which_verdicts_would_flip(client: Any) -> None:
    body = {"workflow": "invoices", "block": "extract", "assertions": [{"type": "word-count", "value": 1}]}
    answer = client.post("/api/evaluate/backtest/", body).json()
    assert answer["count"] == 6
    assert answer["before"] == {"passed": 5, "mean_score": pytest.approx(5.5 / 6)}
    assert answer["after"]["passed"] == 5
    assert answer["flipped_count"] == 0
    assert answer["measured"] == [{"type": "word-count", "values": [1, 1, 2, 1, 1, 1]}]
    stricter = client.post(
        "/api/evaluate/backtest/",
        {**body, "assertions": [{"type": "cost", "threshold": 0.0125}], "limit": 5},
    ).json()
    assert (stricter["count"], stricter["flipped_count"]) == (5, 3)
    assert {flip["now"] for flip in stricter["flipped"]} == {False}
    bad = client.post("/api/evaluate/backtest/", {**body, "assertions": [{"type": "regex", "value": "("}]})
    assert bad.json()["error"]["details"][0]["path"] == "assertions[0].value"


def test_a_backtest_of_a_misspelt_block_is_refused(client: Any) -> None:
    body = {"workflow": "invoices", "block": "extrakt", "assertions": [{"type": "is-json"}]}
    response = client.post("/api/evaluate/backtest/", body)
    assert response.status_code == 400
    (detail,) = response.json()["error"]["details"]
    assert detail["path"] == "block"
    assert "'extract'" in detail["message"]


@pytest.mark.parametrize(
    "metric", ["tone", "3", "9223372036854775808", "sure, 100% so", "[0]", "it's", '"so"', 'a\\b"', "schön"]
)
@pytest.mark.storage
def test_any_name_of_a_metric_has_a_trend(metric: str) -> None:
    named = f"{{type: contains, value: ok, metric: {json.dumps(metric)}}}"
    make_workflow(YAML.replace("- {type: is-json}", f"- {named}"), "invoices")
    client = caller("admin")
    for index, output in enumerate(("ok", "bad")):
        nodes = [{"node_id": "extract", "output": output}]
        assert (
            client.post("/api/runs/ingest/", report(external_id=str(index), nodes=nodes)).status_code == 201
        )
    for block in ("extract", ""):
        answer = client.get("/api/workflows/invoices/trends/", {"metric": metric, "block": block})
        assert [point["value"] for point in answer.json()["points"]] == [1.0, 0.0]
    assert client.get("/api/workflows/invoices/trends/", {"metric": "(a+)+$"}).status_code == 400
