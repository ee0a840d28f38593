"""What a workflow's chart marks, and what can be picked for it."""

from typing import Any

import pytest
from django.utils import timezone

from evals_app.models import Observation, Regression
from evals_app.monitoring.trends import Point, Trend
from evals_app.pages.workflow.trend_chart import regression_marks
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import make_workflow
from workflows_app.models import Workflow

pytestmark = pytest.mark.django_db


def marks(begun: list[dict[str, Any]], metric: str = "score") -> list[Any]:
    points = [Point(None, number, timezone.now(), 1, 1.0, True) for number in range(1, 11)]
    defaults = {"since_run_number": 5, "state": "open", "node_id": "a", "kind": "quality_drop"}
    rows = [Regression(**(defaults | one)) for one in begun]
    return regression_marks(Trend(None, metric, points, None, [], rows), Workflow(slug="w"))


def test_a_flag_names_everything_that_began_at_its_run():
    begun = [{"state": "resolved"}, {"kind": "assertion_regression"}, {"node_id": "b"}, {"kind": "cost_spike"},
             {"since_run_number": 7}]  # fmt: skip
    first, second = marks(begun)
    assert first.label == (
        "Assertion regression of a since #5; Quality drop of b since #5; Quality drop of a since #5, resolved"
    )
    assert (first.index, first.until) == (4, None)
    assert second.label == "Quality drop of a since #7"


def test_a_flag_is_over_when_all_that_began_there_is():
    assert marks([{"state": "resolved"}, {"state": "resolved", "node_id": "b"}])[0].until == 4


def test_a_flag_of_very_many_says_how_many_more():
    (mark,) = marks([{"node_id": f"{n}{'x' * 200}"} for n in range(9)])
    assert mark.label.endswith("; and 3 more") and len(mark.label) < 500


def test_the_flags_of_a_chart_come_with_their_titles():
    run = add_history(make_workflow(), [1.0] * 5)[2]
    add_regression(run)
    add_regression(run, kind="quality_drop")
    page = html(visitor(), "/workflows/shout/trend/")
    assert page.count('class="chart__regression"') == 1
    expected = "Assertion regression of shout since #3", "Quality drop of shout since #3"
    assert all(one in page for one in expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("metric=bogus", "use one of score, pass_rate, cost, latency, tokens, tone."),
        ("block=shout&metric=bogus", "use one of score, pass_rate, cost, latency, tokens, tone."),
        ("block=nobody", "its blocks are shout."),
        ("range=lots", "use one of 50, 200, 1000, 24h, 7d, 30d, all."),
    ],
)
def test_what_a_trend_does_not_have_is_not_found_with_what_it_has(query, expected):
    add_history(make_workflow(), [1.0, 0.5])
    Observation.objects.update(named_scores={"tone": 0.5})
    for path in ("/workflows/shout/trend/", "/workflows/shout/"):
        response = visitor().get(f"{path}?{query}")
        assert response.status_code == 404
        assert response.context["exception"].endswith(expected)


def test_named_metrics_can_be_picked_for_the_whole_workflow():
    add_history(make_workflow(), [1.0, 0.5] * 15)
    Observation.objects.filter(number__lt=30).update(named_scores={"tone": 0.25})
    for block in ("", "block=shout"):
        page = html(visitor(), f"/workflows/shout/trend/?{block}")
        assert "metric=tone#trend" in page
    page = html(visitor(), "/workflows/shout/trend/?metric=tone").replace("&nbsp;", " ")
    assert "Tone per run" in page and "typical 0.25" in page and 'class="chart__plot"' in page


def test_a_metric_goes_along_when_a_block_without_it_is_picked():
    add_history(make_workflow(), [1.0, 0.5], also=["other"])
    Observation.objects.filter(node_id="other").update(named_scores={"tone": 0.25})
    assert "Tone per run of <code>shout</code>" in html(
        visitor(), "/workflows/shout/trend/?block=shout&metric=tone"
    )
