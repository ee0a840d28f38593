"""Runs that end at the same moment: nobody waits in a ring, nothing is counted twice or lost."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from evals_app.models import BlockStatistics, Observation, PinnedBaseline
from evals_app.services import actions, observation
from evals_app.services.ingest import Ingested, Report
from tests.factories import make_workflow
from workflows_app import clock, services
from workflows_app.models import NodeStatus, Run, RunNode, RunStatus, Workflow

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

THREADS = 8
BLOCKS = [f"block{n}" for n in range(12)]
MANY = 'version: "1.0"\nblocks:\n' + "".join(
    f"  {name}:\n    type: code\n    code: 'def main(data): return 1'\n    assertions:\n      - {{type: contains, value: ok}}\n"
    for name in BLOCKS
)


def ingest(reported: dict[str, Any]) -> Ingested:
    return Report(reported).store()


def at_the_same_time(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Do the jobs in parallel threads that start together; the first failure is raised."""
    barrier = threading.Barrier(len(jobs))
    answers: list[Any] = [None] * len(jobs)

    def work(index: int) -> None:
        barrier.wait()
        try:
            answers[index] = jobs[index]()
        except Exception as error:  # noqa: BLE001 - raised again below
            answers[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def report(external_id: str, chance: random.Random) -> dict[str, Any]:
    """A run elsewhere of many blocks, reported in any order, some of them failing."""
    names = chance.sample(BLOCKS, chance.randint(6, len(BLOCKS)))
    nodes = [{"node_id": name, "output": chance.choice(["ok", "no"]), "latency_ms": 5.0} for name in names]
    return {"workflow": "many", "external_id": external_id, "status": "completed", "nodes": nodes}


def finished_run(workflow: Workflow, names: list[str]) -> Run:
    """A run that is over and that nobody has acted on."""
    lease = services.start_held_run(workflow)
    moment = clock.now()
    RunNode.objects.bulk_create(
        RunNode(run=lease.run, node_id=name, block_type="code", status=NodeStatus.COMPLETED, output="ok",
                latency_ms=4.0, evaluated_at=moment, finished_at=moment)
        for name in names
    )  # fmt: skip
    Run.objects.filter(pk=lease.run.pk).update(status=RunStatus.COMPLETED, finished_at=moment)
    return Run.objects.select_related("workflow", "version__workflow").get(pk=lease.run.pk)


def assert_consistent(workflow: Workflow) -> None:
    """Every observation was counted once, in order, and a rebuild gives the same statistics."""
    fields = ("node_id", "count", "state", "slices", "baseline")
    rows = BlockStatistics.objects.filter(workflow=workflow).order_by("node_id")
    for row in rows:
        numbers = list(observation.row_observations(row).values_list("number", flat=True))
        assert numbers == list(range(1, row.count + 1)), row.node_id
    kept = list(rows.values_list(*fields))
    observation.rebuild_statistics(workflow)
    assert kept == list(rows.values_list(*fields))


def test_ingests_of_many_blocks_at_once_lose_nothing():
    workflow = make_workflow(MANY, "many")
    chance = random.Random(4)
    sent = [[report(f"{turn}-{n}", chance) for n in range(THREADS)] for turn in range(8)]
    for reports in sent:
        at_the_same_time([partial(ingest, one) for one in reports])
    wanted = Counter(node["node_id"] for reports in sent for one in reports for node in one["nodes"])
    assert Counter(Observation.objects.values_list("node_id", flat=True)) == wanted
    assert sorted(Run.objects.values_list("number", flat=True)) == list(range(1, len(sent) * THREADS + 1))
    assert_consistent(workflow)


def test_runs_that_end_at_the_same_moment_are_observed_once_each():
    workflow = make_workflow(MANY, "many")
    chance = random.Random(5)
    total = 0
    for _ in range(5):
        runs = [finished_run(workflow, chance.sample(BLOCKS, 8)) for _ in range(THREADS // 2)]
        twice = [run for run in runs for _ in range(2)]
        chance.shuffle(twice)
        answers = at_the_same_time([partial(observation.observe_run, run) for run in twice])
        assert sorted(answers) == [False] * len(runs) + [True] * len(runs)
        total += 8 * len(runs)
    assert Observation.objects.count() == total
    assert_consistent(workflow)


def test_the_same_report_sent_at_once_is_one_run():
    make_workflow(MANY, "many")
    for turn in range(6):
        same = report(f"same-{turn}", random.Random(turn))
        answers = at_the_same_time([partial(ingest, same) for _ in range(THREADS)])
        assert len({answer.run.pk for answer in answers}) == 1
        assert [answer.is_new for answer in answers].count(True) == 1


def test_baselines_pinned_at_the_same_moment_leave_one():
    workflow = make_workflow(MANY, "many")
    runs = [ingest(report(f"pinned-{n}", random.Random(n))).run for n in range(THREADS)]
    for _ in range(3):
        at_the_same_time([partial(actions.pin_baseline, workflow, run=run) for run in runs])
        assert PinnedBaseline.objects.get().run in runs
        actions.pin_baseline(workflow)
    assert not PinnedBaseline.objects.exists()


def test_rebuilding_while_runs_end_loses_none():
    workflow = make_workflow(MANY, "many")
    chance = random.Random(6)
    for turn in range(3):
        jobs: list[Callable[[], Any]] = [
            partial(ingest, report(f"{turn}-{n}", chance)) for n in range(THREADS - 2)
        ]
        at_the_same_time(
            [*jobs, lambda: observation.rebuild_statistics(workflow), lambda: actions.pin_baseline(workflow)]
        )
    assert Run.objects.count() == 3 * (THREADS - 2)
    assert_consistent(workflow)
