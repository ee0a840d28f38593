"""What runs add up to by the hour: always what the runs themselves say."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from evals_app.monitoring.dashboard import figures
from evals_app.monitoring.ranges import length_of
from evals_app.services import evaluation as services
from evals_app.services import retention
from evals_app.services.ingest import Report
from tests.factories import make_workflow, run_now
from workflows_app import executors
from workflows_app import services as runs_of
from workflows_app.clock import simulate
from workflows_app.engine.records import Step
from workflows_app.engine.results import BlockResult
from workflows_app.models import Environment, Run, RunStatus, RunTotals, Source, Workflow
from workflows_app.services import leases
from workflows_app.storage import totals

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

LENGTH = timedelta(hours=6)
SLOTS = 6  # hours of it


def ago(**length: float) -> datetime:
    return timezone.now() - timedelta(**length)


def range_of(days: int = 10) -> tuple[datetime, datetime]:
    end = totals.start_of(totals.slot_of(timezone.now()) + 1)
    return end - timedelta(days=days), end


def kept_totals() -> dict[int, dict[str, Any]]:
    """The totals of ten days by six hours, without the floats' last digits."""
    start, end = range_of()
    found = totals.totals(totals.slot_of(start), totals.slot_of(end), SLOTS)
    rounded = {
        number: {name: round(value, 9) for name, value in sums.items()} for number, sums in found.items()
    }
    return {number: sums for number, sums in rounded.items() if sums["runs"]}


def added_up() -> dict[int, dict[str, Any]]:
    """The same, from every run there is, one by one."""
    start, end = range_of()
    found: dict[int, dict[str, Any]] = {}
    for run in Run.objects.all():
        counts = run.environment == "production" and run.parent_run_id is None and run.source != "eval"
        if not counts or not start <= run.created_at < end:
            continue
        sums = found.setdefault((run.created_at - start) // LENGTH, dict.fromkeys(totals.SUMS, 0))
        sums["runs"] += 1
        sums["passed"] += run.has_passed is True
        sums["rated"] += run.has_passed is not None
        if run.status == RunStatus.COMPLETED:
            sums["scored"] += run.eval_score is not None
            sums["score"] = round(sums["score"] + (run.eval_score or 0), 9)
        sums["priced"] += run.cost_usd is not None
        sums["cost_usd"] = round(sums["cost_usd"] + (run.cost_usd or 0), 9)
    return found


def old_run(workflow: Workflow, created_at: datetime, **fields: Any) -> Run:
    workflow.last_run_number += 1
    workflow.save(update_fields=["last_run_number"])
    return Run.objects.create(
        workflow=workflow,
        version=workflow.current_version,
        number=workflow.last_run_number,
        created_at=created_at,
        **{"status": RunStatus.COMPLETED, "eval_score": 1.0, "eval_passed": True, "cost_usd": 0.25} | fields,
    )


def report(external_id: str, started_at: datetime) -> dict[str, Any]:
    nodes = [{"node_id": "shout", "output": "HELLO", "cost_usd": 0.5}]
    return {
        "workflow": "shout", "external_id": external_id, "status": "completed", "started_at": started_at,
        "finished_at": started_at + timedelta(seconds=3), "nodes": nodes,
    }  # fmt: skip


@pytest.fixture
def workflow() -> Workflow:
    """A workflow with a settled history."""
    workflow = make_workflow()
    for hours in range(4, 100, 8):
        old_run(workflow, ago(hours=hours))
    totals.settle()
    return workflow


def test_a_moment_lies_in_the_hour_it_begins_or_is_within():
    began = datetime(2026, 3, 1, 10, tzinfo=UTC)
    for moment in (began, began + timedelta(minutes=59, seconds=59, microseconds=999999)):
        assert totals.start_of(totals.slot_of(moment)) == began


def test_nothing_adds_up_to_nothing():
    totals.settle()
    assert kept_totals() == {} and not RunTotals.objects.exists()


def test_runs_of_every_kind_add_up_before_and_after_they_are_settled():
    workflow, chance = make_workflow(), random.Random(7)
    start, _ = range_of()
    for _ in range(300):
        created_at = start + timedelta(seconds=chance.uniform(0, 9.9 * 86400))
        if chance.random() < 0.3:  # on the edge of a slot, or just before it
            created_at = totals.start_of(totals.slot_of(created_at)) - timedelta(
                microseconds=chance.choice([0, 1, 300, 1000])
            )
        score = chance.choice([None, 0.0, 0.5, 1.0])
        old_run(
            workflow,
            created_at,
            source=chance.choice([Source.API, Source.INGEST, Source.EVAL]),
            environment=chance.choice([Environment.PRODUCTION] * 5 + [Environment.SIMULATION]),
            status=chance.choice([RunStatus.COMPLETED] * 4 + [RunStatus.FAILED, RunStatus.CANCELLED]),
            eval_score=score,
            eval_passed=None if score is None else score == 1.0,
            cost_usd=chance.choice([None, 0.0, 0.1, 0.000123]),
        )
    parent = Run.objects.counted().first()
    old_run(workflow, ago(days=1), parent_run=parent, depth=1)
    expected = added_up()
    assert kept_totals() == expected
    totals.settle()
    assert RunTotals.objects.count() > 100
    assert kept_totals() == expected


def test_what_is_settled_is_not_read_from_the_runs_again(workflow, django_assert_num_queries):
    kept = RunTotals.objects.update(runs=1000)
    with django_assert_num_queries(4):
        assert sum(sums["runs"] for sums in kept_totals().values()) == 1000 * kept


def test_a_second_look_changes_nothing(workflow):
    before = list(RunTotals.objects.order_by("slot").values())
    totals.settle()
    assert list(RunTotals.objects.order_by("slot").values()) == before


@pytest.mark.parametrize("range_", ["24h", "7d", "30d"])
def test_the_figures_of_a_range_are_exact_to_the_second(range_):
    workflow, chance = make_workflow(), random.Random(3)
    now = timezone.now()
    length = length_of(range_)
    edges = [now - length * n + timedelta(seconds=s) for n in (1, 2) for s in (-3700, -1, 1, 60, 3000, 3700)]
    for created_at in edges + [now - length * chance.uniform(0.01, 2.2) for _ in range(60)]:
        old_run(workflow, created_at)
    ages = [now - run.created_at for run in Run.objects.all()]
    expected = [sum(length * n < age <= length * (n + 1) for age in ages) for n in (0, 1)]
    first = totals.start_of(totals.slot_of(now) + 1) - length
    in_series = Run.objects.filter(created_at__gte=first).count()
    with simulate(now):
        for settle in (lambda: None, totals.settle):
            settle()
            found = figures(range_)
            assert [found["runs"]["value"], found["runs"]["previous"]] == expected
            assert found["cost_usd"]["value"] == pytest.approx(expected[0] * 0.25)
            assert found["pass_rate"]["previous"] == 1.0
            assert sum(found["runs"]["series"]) == in_series


def of_ingest(workflow: Workflow) -> None:
    Report(report("late", ago(days=2))).store()


def of_a_story(workflow: Workflow) -> None:
    with simulate(ago(days=3)):
        runs_of.start_run(workflow, {})


def of_a_run_that_took_long(workflow: Workflow) -> None:
    run = runs_of.start_run(workflow, {})
    Run.objects.filter(pk=run.pk).update(created_at=ago(hours=20))
    totals.run_changed(Run.objects.get(pk=run.pk))
    totals.settle()
    executors.service().execute(run.pk)


def of_a_block_of_a_run_under_way(workflow: Workflow) -> None:
    run = runs_of.start_run(workflow, {})
    Run.objects.filter(pk=run.pk).update(created_at=ago(hours=20))
    totals.run_changed(Run.objects.get(pk=run.pk))
    totals.settle()
    lease = leases.claim(run.pk, ())
    assert lease is not None
    node = runs_of.start_node(lease, Step(node_id="shout", block_id="shout", kind="code"), "code", 1)
    runs_of.finish_node(lease, node, BlockResult(output="HELLO", cost_usd=Decimal("0.75")))


def of_cancelling(workflow: Workflow) -> None:
    run = old_run(workflow, ago(hours=20), status=RunStatus.RUNNING, eval_score=None, eval_passed=None)
    totals.run_changed(run)
    totals.settle()
    runs_of.cancel_run(run)


def of_a_late_verdict(workflow: Workflow) -> None:
    run = run_now(workflow)
    Run.objects.filter(pk=run.pk).update(created_at=ago(hours=20), eval_score=None, eval_passed=None)
    node = run.nodes.get()
    run.nodes.update(evaluated_at=None, eval_score=None, eval_passed=None, eval_results=None)
    totals.run_changed(Run.objects.get(pk=run.pk))
    totals.settle()
    services.evaluate_node(
        run.nodes.select_related("run__version__workflow", "run__workflow").get(pk=node.pk)
    )


def of_prune(workflow: Workflow) -> None:
    Run.objects.update(finished_at=ago(hours=40), observed_at=ago(hours=40))
    assert retention.prune(timedelta(hours=30)).runs


@pytest.mark.parametrize(
    "change",
    [
        of_ingest,
        of_a_story,
        of_a_run_that_took_long,
        of_a_block_of_a_run_under_way,
        of_cancelling,
        of_a_late_verdict,
        of_prune,
    ],
    ids=lambda change: change.__name__,
)
def test_a_change_is_seen_at_once_and_settled_later(workflow: Workflow, change: Callable[[Workflow], None]):
    before = kept_totals()
    change(workflow)
    expected = added_up()
    assert expected != before
    assert RunTotals.objects.filter(is_stale=True).exists()
    assert kept_totals() == expected
    totals.settle()
    assert not RunTotals.objects.filter(is_stale=True).exists()
    assert kept_totals() == expected


def test_the_executors_sweep_settles(workflow):
    of_ingest(workflow)
    executors.announce_unfinished()
    assert not RunTotals.objects.filter(is_stale=True).exists()
    assert kept_totals() == added_up()


def test_a_run_of_this_hour_costs_no_mark(workflow):
    with transaction.atomic():
        run_now(workflow)
    assert not RunTotals.objects.filter(is_stale=True).exists()


def test_a_change_while_it_is_added_up_again_keeps_the_mark(workflow, monkeypatch):
    of_ingest(workflow)
    add_up = totals.sums_of_runs

    def and_another(*arguments: Any) -> Any:
        found = add_up(*arguments)
        monkeypatch.setattr(totals, "sums_of_runs", add_up)
        Report(report("another", ago(days=2))).store()
        return found

    monkeypatch.setattr(totals, "extend", lambda end: None)
    monkeypatch.setattr(totals, "sums_of_runs", and_another)
    totals.settle()
    assert RunTotals.objects.filter(is_stale=True).count() == 1
    assert kept_totals() == added_up()


def test_a_change_that_is_not_committed_yet_is_not_settled_away():
    workflow = make_workflow()
    old_run(workflow, ago(days=2, minutes=30))
    is_written, may_commit = threading.Event(), threading.Event()

    def write_late() -> None:
        try:
            with transaction.atomic():
                run = old_run(workflow, ago(days=2))
                totals.run_changed(run)
                is_written.set()
                assert may_commit.wait(20)
        finally:
            connection.close()

    writer = threading.Thread(target=write_late)
    writer.start()
    assert is_written.wait(20)
    threading.Timer(0.3, may_commit.set).start()
    totals.settle()  # waits for the writer's slot, or for SQLite's one writer
    writer.join(20)
    assert kept_totals() == added_up()
    totals.settle()
    assert not RunTotals.objects.filter(is_stale=True).exists()
    assert kept_totals() == added_up()
    assert sum(sums["runs"] for sums in kept_totals().values()) == 2
