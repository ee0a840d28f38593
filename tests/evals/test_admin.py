"""Regressions, statistics and baselines in the admin."""

import pytest

from evals_app.models import BlockStatistics, Observation, PinnedBaseline, Regression
from tests.callers import user_in
from tests.factories import make_workflow, run_now
from tests.workflows.admin.test_workflows import as_
from workflows_app.models import AuditEntry, Workflow

pytestmark = pytest.mark.django_db

REGRESSIONS = "/admin/evals_app/regression/"
STATISTICS = "/admin/evals_app/blockstatistics/"
PINS = "/admin/evals_app/pinnedbaseline/"


@pytest.fixture
def workflow(transactional_db: None) -> Workflow:
    return make_workflow()


def test_regressions_are_acknowledged_and_resolved_in_the_name_of_who_did(workflow: Workflow) -> None:
    row = Regression.objects.create(workflow=workflow, node_id="shout", kind="quality_drop", since_number=3)
    editor = as_("editor")
    editor.post(REGRESSIONS, {"action": "acknowledge", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert (row.state, row.acknowledged_by) == ("acknowledged", user_in("editor"))
    editor.post(REGRESSIONS, {"action": "resolve", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert (row.state, row.resolved_by) == ("resolved", user_in("editor"))
    late = editor.post(REGRESSIONS, {"action": "acknowledge", "_selected_action": [row.pk]}, follow=True)
    assert "already resolved" in late.content.decode()
    actions = set(AuditEntry.objects.filter(user=user_in("editor")).values_list("action", flat=True))
    assert actions == {"regression.acknowledge", "regression.resolve"}


def test_regressions_of_one_block_are_reported_apart_with_their_evidence_in_a_word(
    workflow: Workflow,
) -> None:
    about = {"workflow": workflow, "node_id": "shout", "since_number": 3}
    Regression.objects.create(**about, kind="quality_drop", evidence=9.14)
    Regression.objects.create(**about, kind="assertion_regression", assertion="is-json#5e0eb5", evidence=21.2)
    page = as_("editor").get(REGRESSIONS).content.decode()
    assert "shout/shout: quality drop<" in page
    assert "shout/shout: assertion regression of is-json<" in page
    assert 'Fair <span class="quiet">9.1</span>' in page
    assert 'Strong <span class="quiet">21.2</span>' in page


def test_staff_who_only_see_cannot_act_on_a_regression(workflow: Workflow) -> None:
    row = Regression.objects.create(workflow=workflow, node_id="shout", kind="quality_drop", since_number=3)
    viewer = user_in("viewer")
    viewer.is_staff = True
    viewer.save()
    as_("viewer").post(REGRESSIONS, {"action": "resolve", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert row.state == "open"


def test_rebuilding_gives_back_what_the_observations_say(workflow: Workflow) -> None:
    for _ in range(3):
        run_now(workflow)
    row = BlockStatistics.objects.get()
    before = row.baseline
    assert Observation.objects.count() == row.count == 3
    BlockStatistics.objects.update(baseline={}, count=0)
    as_("editor").post(STATISTICS, {"action": "rebuild", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert (row.count, row.baseline) == (3, before)
    assert AuditEntry.objects.get(action="statistics.rebuild").detail == {"observations": 3}


def test_a_baseline_is_pinned_to_a_run_of_its_workflow_and_unpinned(workflow: Workflow) -> None:
    run, other = run_now(workflow), run_now(make_workflow(slug="other"))
    editor = as_("editor")
    wrong = editor.post(f"{PINS}add/", {"workflow": workflow.pk, "run": str(other.pk)})
    assert "belongs to other, not to shout" in wrong.content.decode()
    neither = editor.post(f"{PINS}add/", {"workflow": workflow.pk})
    assert "either a run or a version" in neither.content.decode()
    assert not PinnedBaseline.objects.exists()

    editor.post(f"{PINS}add/", {"workflow": workflow.pk, "run": str(run.pk)})
    pin = PinnedBaseline.objects.get()
    assert (pin.run, pin.pinned_by) == (run, user_in("editor"))
    row = BlockStatistics.objects.get(workflow=workflow)
    assert row.pinned is not None and row.pinned["score"]["count"] == 1
    editor.post(f"{PINS}{pin.pk}/delete/", {"post": "yes"})
    row.refresh_from_db()
    assert row.pinned is None and not PinnedBaseline.objects.exists()
    actions = list(AuditEntry.objects.filter(target="shout").order_by("id").values_list("action", flat=True))
    assert actions[-2:] == ["baseline.pin", "baseline.unpin"]
