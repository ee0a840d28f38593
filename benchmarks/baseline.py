"""What it costs to find a node's baseline and to evaluate it, with a thousand and with a million nodes stored."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("RUNSIGHT_HOME", tempfile.mkdtemp(prefix="runsight-bench-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from fill import NODES_A_RUN, fill, stored_workflow  # noqa: E402

from evals_app.monitoring.baselines import baseline_of  # noqa: E402
from evals_app.services.evaluation import evaluate_node  # noqa: E402
from workflows_app import executors, services  # noqa: E402
from workflows_app.models import RunNode, Workflow  # noqa: E402

SIZES = (1_000, 1_000_000)
ROUNDS = 5


def main() -> None:
    call_command("migrate", verbosity=0)
    small, large = (stored_workflow(f"stored-{size}") for size in SIZES)
    for workflow, size in ((small, SIZES[0]), (large, SIZES[1])):
        fill(workflow, size // NODES_A_RUN)
        for _ in range(3):  # real runs, so that there is a baseline to find
            run = services.start_run(workflow, {})
            executors.service().execute(run.pk)
    executors.service().stop()
    print(f"{RunNode.objects.count():,} nodes stored; medians of {ROUNDS} alternating rounds")
    print(f"{'what':34}{SIZES[0]:>14,}{SIZES[1]:>14,}{'ratio':>8}")
    for name, measure in (("find the baseline, µs", find), ("evaluate and write a node, µs", evaluate)):
        few, many = [], []
        for _ in range(ROUNDS):  # alternating, so that a noisy minute hits both
            few.append(measure(small))
            many.append(measure(large))
        first, second = statistics.median(few), statistics.median(many)
        print(f"{name:34}{first:>14.0f}{second:>14.0f}{second / first:>8.2f}")


def find(workflow: Workflow) -> float:
    return per_call(lambda: baseline_of(workflow.pk, "b5"), 200)


def evaluate(workflow: Workflow) -> float:
    node = (
        RunNode.objects.select_related("run__version__workflow", "run__workflow")
        .filter(run__workflow=workflow, node_id="b5")
        .last()
    )
    assert node is not None

    def again() -> None:
        RunNode.objects.filter(pk=node.pk).update(evaluated_at=None)
        assert evaluate_node(node)

    return per_call(again, 50)


def per_call(call, times: int) -> float:  # type: ignore[no-untyped-def]
    begun = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begun) / times * 1e6


if __name__ == "__main__":
    main()
