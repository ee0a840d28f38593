"""What a node costs with little and with much stored, and where the time of an ingest goes.

    python benchmarks/growth.py [--nodes 1000000] [--rounds 5] [--profile]

Two PostgreSQL databases, one with 1,000 nodes and one with a million, take turns: runs of 10 nodes with 5 assertions
each are ingested in-process. The median of the rounds' ratios counts, because a machine is never quiet.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from sides import Side  # noqa: E402

RUNS_A_ROUND = 30
SMALL_NODES = 1_000


def serve(nodes: int) -> None:
    """In the child: fill, then ingest on request and print seconds of clock and of processor."""
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from benchmarks import fill, load
    from workflows_app import services

    call_command("migrate", verbosity=0)
    fill.fill(fill.stored_workflow(), nodes // fill.NODES_A_RUN)
    services.save_version("load", load.YAML)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    _ingest(100, "warm")  # plans compiled, and the block's statistics past their first runs
    for turn, line in enumerate(sys.stdin):
        if line.startswith("round"):
            begun, spent = time.perf_counter(), time.process_time()
            _ingest(RUNS_A_ROUND, str(turn))
            print(time.perf_counter() - begun, time.process_time() - spent)
        elif line.startswith("profile"):
            _profile()
        elif line.startswith("end"):
            return
        print("done", flush=True)


def _ingest(runs: int, prefix: str) -> None:
    from benchmarks.load import report
    from evals_app.services.ingest import Report

    for number in range(runs):
        Report(report(f"{prefix}-{number}")).store()


def _profile() -> None:
    profile = cProfile.Profile()
    profile.runcall(_ingest, 50, "profile")
    pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(22)
    pstats.Stats(profile, stream=sys.stdout).sort_stats("cumtime").print_stats(
        "runsight|evals_app|workflows_app", 25
    )


def compare(options: argparse.Namespace) -> int:
    from tests import services as found

    server = found.url_of("postgres")
    sides: list[Side] = []
    try:
        for nodes in (SMALL_NODES, options.nodes):
            sides.append(Side(__file__, nodes, server))
            sides[-1].ask("ready")
        rounds = [[_numbers(side.ask("round")) for side in sides] for _ in range(options.rounds)]
        if options.profile:
            print(sides[1].ask("profile"))
    finally:
        for side in sides:
            side.stop()
    per_node = 1000 / (RUNS_A_ROUND * 10)
    for index, label in enumerate(("clock", "processor")):
        small, large = ([one[side][index] * per_node for one in rounds] for side in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(small, large, strict=True))
        print(
            f"{label:<10} {statistics.median(small):6.2f} ms a node with {SMALL_NODES:,} stored, "
            f"{statistics.median(large):6.2f} ms with {options.nodes:,}; ratio {ratio:.2f} (at most 1.5 wanted)"
        )
        if label == "clock" and ratio > 1.5:
            return 1
    return 0


def _numbers(text: str) -> tuple[float, float]:
    clock, processor = text.split()
    return float(clock), float(processor)


def main() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return serve(options.serve) if options.serve else compare(options)


if __name__ == "__main__":
    raise SystemExit(main())
