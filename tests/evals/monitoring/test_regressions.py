"""A regression opens once, follows its evidence, and opens again when it was resolved too early."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evals_app.evidence.model import Level, RegressionChange, Suspect
from evals_app.models import Observation, Regression, RegressionKind
from evals_app.monitoring.regressions import sentence
from evals_app.services import actions, regressions
from tests.callers import caller
from tests.evals.api.test_ingest import YAML as INVOICES
from tests.evals.api.test_ingest import report
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import ONE_CODE_BLOCK, make_workflow, run_now
from workflows_app.models import EventName, Workflow
from workflows_app.services import save_version

OPENED = RegressionChange(
    kind="opened",
    regression_kind="quality_drop",
    metric="score",
    assertion=None,
    assertions=(),
    since_number=1,
    before=Level(40, 0.95),
    after=Level(6, 0.5),
    evidence=10.0,
    suspected=None,
)


@pytest.fixture
def apply(transactional_db):
    """Apply a change of the evidence to a block that has run once."""
    run = run_now(make_workflow())
    observation = Observation.objects.get(node_id="shout")
    return lambda **changes: regressions.apply(run, observation, replace(OPENED, **changes))


@pytest.mark.storage
def test_regression_appears_once_and_follows_its_evidence(apply):
    apply()
    apply(kind="strengthened", evidence=21.0)
    regression = Regression.objects.get()
    assert (regression.state, regression.evidence) == ("open", 21.0)
    assert regression.found_run.events.filter(event=EventName.REGRESSION_FOUND).count() == 1
    assert regression.found_run.regression_count == 1


@pytest.mark.storage
def test_regression_says_how_it_is_after_every_run_and_what_it_was_once_over(apply):
    apply()
    assert not apply(kind="continued", after=Level(14, 0.7), evidence=12.0)
    regression = Regression.objects.get()
    assert (regression.after, regression.evidence) == ({"count": 14, "mean": 0.7}, 12.0)
    assert "score was 0.95, now 0.70 since run #1" in sentence(regression)
    assert regression.found_run.events.filter(event=EventName.REGRESSION_FOUND).count() == 1
    apply(kind="closed", after=Level(12, 0.6))
    regression.refresh_from_db()
    assert "score was 0.95, then 0.60 since run #1" in sentence(regression)


@pytest.mark.storage
def test_what_somebody_resolved_is_left_as_it_was(apply):
    apply()
    actions.resolve_regression(Regression.objects.get(), None)
    apply(kind="continued", after=Level(14, 0.7))
    assert Regression.objects.get().after == {"count": 6, "mean": 0.5}


@pytest.mark.parametrize(
    ("suspected", "expected"),
    [
        ({"workflow_version": 3, "from_run": 86}, "since version 3, run #86"),
        ({"workflow_version": 3, "from_run": 73}, "since run #86; version 3 (from run #73) is suspected"),
        ({"soul_version": "ab12", "from_run": 90},
         "since run #86; soul version ab12 (from run #90) is suspected"),
        ({"workflow_version": 3}, "since version 3, run #86"),  # of a time when the run was not kept
        (None, "since run #86"),
    ],
)  # fmt: skip
def test_a_version_that_did_not_begin_where_the_regression_did_is_only_suspected(suspected, expected):
    level = {"count": 9, "mean": 0.5}
    regression = Regression(workflow=Workflow(slug="w"), node_id="b", kind="quality_drop", before=level,
                            after=level, since_run_number=86, suspected=suspected)  # fmt: skip
    assert sentence(regression).endswith(expected)


@pytest.mark.storage
def test_the_run_at_which_a_suspected_version_came_is_kept(apply):
    apply(suspected=Suspect(1, 2, "soul-a", 1, "soul-a"))
    assert Regression.objects.get().suspected == {
        "workflow_version": 2, "soul_version": None, "from_run": 1,
    }  # fmt: skip


@pytest.mark.storage
def test_regression_closes_itself_when_the_block_is_back(apply):
    apply()
    apply(kind="closed")
    assert Regression.objects.get().state == "resolved"
    apply()
    assert Regression.objects.unresolved().count() == 1


@pytest.mark.storage
def test_regression_resolved_too_early_opens_again_once_its_evidence_has_doubled(apply):
    apply()
    actions.resolve_regression(Regression.objects.get(), None)
    apply(kind="weakened", evidence=9.0)
    assert not Regression.objects.unresolved().exists()
    apply(kind="strengthened", evidence=21.0)
    assert Regression.objects.unresolved().get().evidence == 21.0
    assert Regression.objects.count() == 2


@pytest.mark.storage
def test_regression_of_a_block_that_is_no_more_is_resolved_by_the_next_version(apply):
    apply()
    workflow = Workflow.objects.get()
    run_now(workflow)
    assert Regression.objects.unresolved().exists()
    make_workflow(ONE_CODE_BLOCK.replace("  shout:", "  cry:"))
    run_now(Workflow.objects.get())
    assert not Regression.objects.unresolved().exists()


def observe(client, outputs, first):
    """Runs of one block with these outputs, one after the other."""
    for index, output in enumerate(outputs, start=first):
        sent = report(external_id=f"n{index}", nodes=[{"node_id": "extract", "output": output}])
        assert client.post("/api/runs/ingest/", sent).status_code == 201


def of_regressions(captured):
    return [one["sql"] for one in captured.captured_queries if Regression._meta.db_table in one["sql"]]


@pytest.mark.storage
@pytest.mark.django_db
def test_an_open_regression_follows_every_run_and_a_calm_block_costs_no_query():
    make_workflow(INVOICES, "invoices")
    client = caller("admin")
    observe(client, ["{}"] * 25, 1)
    with CaptureQueriesContext(connection) as calm:
        observe(client, ["{}"], 26)
    assert of_regressions(calm) == []
    observe(client, ["no json"] * 8 + ["{}"] * 2, 27)
    regression = Regression.objects.get(kind=RegressionKind.ASSERTION)
    assert regression.since_run_number == 27
    opened = Regression.objects.count()
    with CaptureQueriesContext(connection) as worse:
        observe(client, ["{}"], 37)
    # One statement for each that is open.
    assert [sql.split()[0] for sql in of_regressions(worse)] == ["UPDATE"] * opened
    regression.refresh_from_db()
    assert regression.after == {"count": 11, "mean": pytest.approx(3 / 11)}
    assert "now 27%" in sentence(regression)


@pytest.mark.storage
@pytest.mark.django_db
def test_a_version_that_came_before_a_regression_began_is_only_suspected():
    make_workflow(INVOICES, "invoices")
    client = caller("admin")
    observe(client, ["{}"] * 25, 1)
    save_version("invoices", INVOICES.replace("prompt: x", "prompt: y"))
    observe(client, ["{}"] * 9 + ["no json"] * 8, 26)
    regression = Regression.objects.get(kind=RegressionKind.ASSERTION)
    assert regression.since_run_number == 35
    assert regression.suspected == {"workflow_version": 2, "soul_version": None, "from_run": 26}
    suspected = client.get(f"/api/regressions/{regression.pk}/").json()["suspected"]
    assert suspected["workflow_version"] == 2
    assert "since run #35; version 2 (from run #26) is suspected" in sentence(regression)


@pytest.mark.storage
@pytest.mark.django_db
def test_the_alarm_calls_a_version_suspected_that_came_with_another_run():
    workflow = make_workflow()
    run = add_history(workflow, [1.0] * 5)[-1]
    row = add_regression(run, suspected={"workflow_version": 1, "soul_version": None, "from_run": run.number})
    assert "It began with <a" in html(visitor(), "/workflows/shout/")
    row.suspected["from_run"] = 2
    row.save()
    page = html(visitor(), "/workflows/shout/")
    assert "It began with" not in page
    assert "Suspected: <a" in page
    assert "since run #5; version 1 (from run #2) is suspected" in page
