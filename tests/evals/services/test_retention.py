"""Old runs go; what they said about their blocks stays."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from itertools import pairwise

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from evals_app.models import BlockStatistics, Observation, PinnedBaseline
from evals_app.services import actions, retention
from evals_app.services.ingest import Report
from evals_app.services.observation import rebuild_statistics
from tests.factories import make_workflow
from tests.timing import wait_until_blocked
from workflows_app.models import IdempotencyKey, Run, RunEvent, RunNode, RunStatus, Workflow
from workflows_app.services import Refused

pytestmark = pytest.mark.django_db


def run_of(age_days: float, number: int) -> Run:
    """A run that ended so many days ago."""
    nodes = [{"node_id": "shout", "output": "HELLO"}]
    report = {"workflow": "shout", "external_id": str(number), "status": "completed", "nodes": nodes}
    run = Report(report).store().run
    moment = timezone.now() - timedelta(days=age_days)
    Run.objects.filter(pk=run.pk).update(created_at=moment, finished_at=moment)
    return run


@pytest.fixture
def workflow() -> Workflow:
    return make_workflow()


def pruned(*arguments: str) -> str:
    out = StringIO()
    call_command("prune", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.storage
def test_old_runs_go_in_batches_and_their_observations_stay(workflow, monkeypatch):
    monkeypatch.setattr(retention, "RUNS_A_BATCH", 3)
    old = [run_of(100 + n, n) for n in range(7)]
    new = [run_of(10, 100 + n) for n in range(2)]
    batches = []
    kept = list(BlockStatistics.objects.values_list("count", "state", "slices"))
    retention.prune(timedelta(days=90), lambda gone: batches.append(gone.runs))
    assert batches == [3, 6, 7]
    assert set(Run.objects.values_list("pk", flat=True)) == {run.pk for run in new}
    assert RunNode.objects.count() == len(new)
    assert set(RunEvent.objects.values_list("run", flat=True)) == {run.pk for run in new}
    assert list(Observation.objects.values_list("number", "run_number")) == [(n, n) for n in range(1, 10)]
    assert Observation.objects.filter(run=None).count() == len(old)
    assert list(BlockStatistics.objects.values_list("count", "state", "slices")) == kept
    rebuild_statistics(workflow)
    assert list(BlockStatistics.objects.values_list("count", "state", "slices")) == kept


@pytest.mark.storage
def test_pinned_running_and_unobserved_runs_stay(workflow):
    pinned, running, unobserved, _ = (run_of(100, n) for n in range(4))
    actions.pin_baseline(workflow, run=pinned)
    Run.objects.filter(pk=running.pk).update(status=RunStatus.RUNNING, finished_at=None)
    Run.objects.filter(pk=unobserved.pk).update(observed_at=None)
    assert "1 runs" in pruned("--keep", "90d", "--dry-run")
    assert "Deleted 1 runs, 1 nodes, 5 events" in pruned("--keep", "90d")
    assert set(Run.objects.values_list("pk", flat=True)) == {pinned.pk, running.pk, unobserved.pk}
    assert PinnedBaseline.objects.get().run_id == pinned.pk


@pytest.mark.storage
def test_children_go_with_their_parent_and_not_before(workflow):
    parent, child = run_of(100, 1), run_of(101, 2)
    Run.objects.filter(pk=child.pk).update(parent_run=parent)
    young, old_child = run_of(1, 3), run_of(101, 4)
    Run.objects.filter(pk=old_child.pk).update(parent_run=young)
    RunNode.objects.filter(run=young).update(child_run=old_child)
    assert retention.prune(timedelta(days=90)).runs == 2
    assert set(Run.objects.values_list("pk", flat=True)) == {young.pk, old_child.pk}


@pytest.mark.storage
@pytest.mark.parametrize("depth", [1, 2])
def test_tree_of_a_pinned_or_unobserved_child_stays(workflow, depth):
    trees = [[run_of(100, 10 * tree + level) for level in range(depth + 1)] for tree in range(3)]
    for tree in trees:
        for parent, child in pairwise(tree):
            Run.objects.filter(pk=child.pk).update(parent_run=parent)
    actions.pin_baseline(workflow, run=trees[0][-1])
    Run.objects.filter(pk=trees[1][-1].pk).update(observed_at=None)
    assert "1 runs" in pruned("--keep", "90d", "--dry-run")
    assert retention.prune(timedelta(days=90)).runs == depth + 1
    assert set(Run.objects.all()) == {*trees[0], *trees[1]}
    assert PinnedBaseline.objects.get().run == trees[0][-1]


@contextmanager
def meanwhile(job: Callable[[threading.Event], object]) -> Iterator[list[object]]:
    """The block's transaction stays open until a job in another thread has set its event; yields what the job returned."""
    returned: list[object] = []
    is_there = threading.Event()

    def work() -> None:
        try:
            returned.append(job(is_there))
        except Refused as refused:
            returned.append(refused.message)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    with transaction.atomic():
        yield returned
        thread.start()
        assert is_there.wait(30)
        wait_until_blocked()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("depth", [0, 1])
def test_run_that_is_pinned_while_its_batch_is_deleted_stays(workflow, depth):
    tree = [run_of(100, level) for level in range(depth + 1)]
    Run.objects.filter(pk=tree[-1].pk, number__gt=1).update(parent_run=tree[0])
    run_of(100, 9)
    gone = retention.Pruned()

    def prune(is_there: threading.Event) -> None:
        batch = set(retention.candidates(timezone.now()))
        is_there.set()
        retention.delete_runs(batch, gone)

    with meanwhile(prune):
        actions.pin_baseline(workflow, run=tree[-1])
    assert gone.runs == 1
    assert set(Run.objects.all()) == set(tree)
    assert PinnedBaseline.objects.get().run == tree[-1]


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_run_that_is_deleted_a_moment_before_cannot_be_pinned(workflow):
    run = run_of(100, 1)

    def pin(is_there: threading.Event) -> None:
        is_there.set()
        actions.pin_baseline(workflow, run=run)

    with meanwhile(pin) as returned:
        retention.delete_runs({run.pk}, retention.Pruned())
    assert returned == ["Run #1 no longer exists; it was deleted a moment ago."]
    assert not PinnedBaseline.objects.exists()


@pytest.mark.parametrize("door", ["page", "api", "admin"])
def test_who_pins_a_run_that_has_just_gone_is_reported(workflow, admin_client, monkeypatch, door):
    run = run_of(100, 1)
    pin = actions.pin_baseline

    def pin_late(*given: object, **more: object) -> None:
        Run.objects.filter(pk=run.pk).delete()
        pin(*given, **more)

    monkeypatch.setattr(actions, "pin_baseline", pin_late)
    if door == "api":
        address = f"/api/workflows/{workflow.slug}/baseline/"
        answer = admin_client.put(address, {"run": str(run.pk)}, "application/json")
        assert answer.status_code == 409
    else:
        address = f"/workflows/{workflow.slug}/baseline/"
        if door == "admin":
            address = "/admin/evals_app/pinnedbaseline/add/"
        answer = admin_client.post(address, {"workflow": workflow.pk, "run": str(run.pk)}, follow=True)
    assert f"Run #{run.number} no longer exists" in answer.content.decode()
    assert not PinnedBaseline.objects.exists()


@pytest.mark.storage
def test_idempotency_keys_of_yesterday_go(workflow, admin_user):
    run = run_of(1, 1)
    for key, hours in (("old", 25), ("new", 23)):
        moment = timezone.now() - timedelta(hours=hours)
        IdempotencyKey.objects.create(user=admin_user, path="/", key=key, run=run, created_at=moment)
    assert retention.prune(timedelta(days=90)).keys == 1
    assert IdempotencyKey.objects.get().key == "new"


@pytest.mark.parametrize("text", ["90", "d", "0d", "-1d", "90 days"])
def test_keep_that_is_no_span_is_refused(text):
    with pytest.raises(CommandError, match="use a number and h, d or w"):
        call_command("prune", f"--keep={text}")
