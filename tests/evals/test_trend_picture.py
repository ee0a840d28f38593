"""What a workflow's chart marks."""

from typing import Any

import pytest

from evals_app.trend_picture import _regressions
from tests.evals.histories import add_history, add_regression
from tests.evals.test_pages_dashboard import html, visitor
from tests.factories import make_workflow
from workflows_app.models import Workflow

pytestmark = pytest.mark.django_db


def marks(begun: list[dict[str, Any]], metric: str = "score") -> list[Any]:
    points = [{"number": number} for number in range(1, 11)]
    rows = [{"since_run": 5, "state": "open", "node_id": "a", "kind": "quality_drop"} | one for one in begun]
    return _regressions(points, rows, metric, Workflow(slug="w"))


def test_a_flag_names_everything_that_began_at_its_run():
    begun = [{"state": "resolved"}, {"kind": "assertion_regression"}, {"node_id": "b"}, {"kind": "cost_spike"},
             {"since_run": 7}]  # fmt: skip
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
    told = "Assertion regression of shout since #3", "Quality drop of shout since #3"
    assert all(one in page for one in told)
