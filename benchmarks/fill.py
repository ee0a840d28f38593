"""Fills a database with as many runs and nodes as a benchmark asks for, by a few INSERT … SELECT statements."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import connection, models, transaction

from evals_app.models import BlockStatistics, Observation
from workflows_app import services
from workflows_app.models import Run, RunEvent, RunNode, RunTotals, Workflow
from workflows_app.storage import totals

NODES_A_RUN = 10
BLOCKS = [f"b{n}" for n in range(NODES_A_RUN)]
YAML = 'version: "1.0"\nblocks:\n' + "".join(
    f"  {name}:\n    type: code\n    code: |\n      def main(data):\n          return 'ok {name}'\n"
    "    assertions:\n      - {type: contains, value: ok}\n"
    + (f"    depends: {BLOCKS[n - 1]}\n" if n else "")
    for n, name in enumerate(BLOCKS)
)
TURN = 50  # copies of one original before the next one's turn


def stored_workflow(slug: str = "stored") -> Workflow:
    """The workflow whose runs are filled in."""
    return services.save_version(slug, YAML).workflow


@transaction.atomic
def fill(workflow: Workflow, runs: int, originals: int = 1) -> None:
    """Add copies of its first runs by turns, with all that belongs to them, until it has `runs` of them."""
    have = workflow.runs.count() or _make_run(workflow).number
    if runs <= have:
        return
    first = workflow.runs.filter(number__lte=originals).order_by("number")
    _copy_runs(Copies(workflow, first, have + 1, runs))
    Workflow.objects.filter(pk=workflow.pk).update(last_run_number=runs)
    BlockStatistics.objects.filter(workflow=workflow).update(count=runs)
    RunTotals.objects.all().delete()
    totals.settle()  # as the sweep does
    analyze()


def analyze() -> None:
    """Let PostgreSQL look at what is stored, as autovacuum does by and by, where it is on."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def _make_run(workflow: Workflow) -> Run:
    """The first run with its nodes, as if it had been executed."""
    version = workflow.current_version
    run = Run.objects.create(
        id=uuid.UUID(int=(workflow.pk << 64) + 1), workflow=workflow, version=version, number=1, status="completed", eval_score=1.0,
        eval_passed=True, cost_usd=0.001, duration_ms=900.0, nodes_done=NODES_A_RUN, assertions_passed=NODES_A_RUN,
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(
        started_at=run.created_at, finished_at=run.created_at, observed_at=run.created_at
    )
    results = {
        "assertions": [{"type": "contains", "passed": True, "score": 1.0, "reason": "Output contains 'ok'.", "weight": 1.0,
                        "metric": None, "error": False, "measured": None, "index": 0}],
        "named_scores": {}, "error": None,
    }  # fmt: skip
    RunNode.objects.bulk_create(
        RunNode(
            run=run, node_id=name, block_type="code", status="completed", output=f"ok {name} " * 20, latency_ms=90.0, cost_usd=0.0001,
            tokens={"prompt": 10, "completion": 10, "total": 20}, eval_score=1.0, eval_passed=True, eval_results=results,
            evaluated_at=run.created_at, finished_at=run.created_at,
        )
        for name in BLOCKS
    )  # fmt: skip
    return run


def _copy_runs(copies: Copies) -> None:
    """Runs, their nodes and events, and what they said about their blocks if they were observed."""
    copies.insert(Run, "id", id=copies.key(), number="n.i")
    for model in (RunNode, RunEvent):
        copies.insert(model, "run_id", run_id=copies.key())
    copies.insert(Observation, "run_id", run_id=copies.key(), number="n.i", run_number="n.i")


class Copies:
    """Copies of rows and of what belongs to them: numbered (`n.i` in SQL), each some minutes before the next."""

    def __init__(
        self, workflow: Workflow, originals: Sequence[models.Model], first: int, last: int, minutes: int = 1
    ) -> None:
        self.is_sqlite = connection.vendor == "sqlite"
        self.prefix = f"{workflow.pk:016x}"  # ids of different workflows must differ
        self.age_minutes = f"({last} - n.i) * {minutes}"
        by_turns = " ".join(f"WHEN {turn} THEN {self._id(row)}" for turn, row in enumerate(originals))
        self.numbers = (
            f"WITH RECURSIVE numbers(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM numbers WHERE i < {last}), "
            f"n AS (SELECT i, CASE i / {TURN} % {len(originals)} {by_turns} END AS original FROM numbers)"
        )

    def _id(self, row: models.Model) -> str:
        if not isinstance(row.pk, uuid.UUID):
            return str(row.pk)
        return f"'{row.pk.hex}'" if self.is_sqlite else f"'{row.pk}'::uuid"

    def key(self, number: str = "n.i") -> str:
        """The id of the copy of this number."""
        if self.is_sqlite:
            return f"'{self.prefix}' || printf('%016x', {number})"
        return f"('{self.prefix}' || lpad(to_hex({number}), 16, '0'))::uuid"

    def insert(self, model: type[models.Model], belongs_by: str, **replaced: str) -> None:
        """Copy the rows that belong to an original by this column: all times move, and what is replaced differs."""
        chosen: dict[str, str] = {}
        for field in model._meta.concrete_fields:
            if field.column in replaced:
                chosen[field.column] = replaced[field.column]
            elif isinstance(field, models.DateTimeField):
                chosen[field.column] = self._moment(f"m.{field.column}")
            elif not field.primary_key:
                chosen[field.column] = f"m.{field.column}"
        table = model._meta.db_table
        # In the order in which runs would have written them; SQLite joins from left to right anyway.
        order = "" if self.is_sqlite else "ORDER BY n.i, m.id"
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(chosen)}) {self.numbers} SELECT {', '.join(chosen.values())} "
                f"FROM n CROSS JOIN {table} m WHERE m.{belongs_by} = n.original {order}"
            )

    def _moment(self, column: str) -> str:
        if self.is_sqlite:
            return f"strftime('%Y-%m-%d %H:%M:%f', {column}, '-' || ({self.age_minutes}) || ' minutes')"
        return f"{column} - make_interval(mins => {self.age_minutes})"
