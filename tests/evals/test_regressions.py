"""A regression is told once, follows its evidence, and is told again when it was resolved too early."""

from dataclasses import replace

import pytest

from evals_app import actions, regressions
from evals_app.evidence import Change, Level
from evals_app.models import BlockStatistics, Observation, Regression
from tests.factories import ONE_CODE_BLOCK, make_workflow, run_now
from workflows_app.models import EventName, Workflow

OPENED = Change(
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
def tell(transactional_db):
    """Tell the evidence's change about a block that has run once."""
    run = run_now(make_workflow())
    row = BlockStatistics.objects.get(node_id="shout")
    observation = Observation.objects.get(node_id="shout")
    return lambda **changes: regressions.apply(run, row, observation, replace(OPENED, **changes))


def test_regression_appears_once_and_follows_its_evidence(tell):
    tell()
    tell(kind="strengthened", evidence=21.0)
    regression = Regression.objects.get()
    assert (regression.state, regression.evidence) == ("open", 21.0)
    assert regression.found_run.events.filter(event=EventName.REGRESSION_FOUND).count() == 1
    assert regression.found_run.regression_count == 1


def test_regression_closes_itself_when_the_block_is_back(tell):
    tell()
    tell(kind="closed")
    assert Regression.objects.get().state == "resolved"
    tell()
    assert Regression.objects.unresolved().count() == 1


def test_regression_resolved_too_early_is_told_again_once_its_evidence_has_doubled(tell):
    tell()
    actions.resolve_regression(Regression.objects.get(), None)
    tell(kind="weakened", evidence=9.0)
    assert not Regression.objects.unresolved().exists()
    tell(kind="strengthened", evidence=21.0)
    assert Regression.objects.unresolved().get().evidence == 21.0
    assert Regression.objects.count() == 2


def test_regression_of_a_block_that_is_no_more_is_resolved_by_the_next_version(tell):
    tell()
    workflow = Workflow.objects.get()
    run_now(workflow)
    assert Regression.objects.unresolved().exists()
    make_workflow(ONE_CODE_BLOCK.replace("  shout:", "  cry:"))
    run_now(Workflow.objects.get())
    assert not Regression.objects.unresolved().exists()
