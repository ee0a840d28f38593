"""Fills a database with as many runs and nodes as a benchmark asks for, by a few INSERT … SELECT statements."""

from __future__ import annotations

import uuid

from django.db import connection, transaction

from evals_app.models import BlockStatistics, Observation
from workflows_app import services, totals
from workflows_app.models import Run, RunNode, RunTotals, Workflow

NODES_A_RUN = 10
BLOCKS = [f"b{n}" for n in range(NODES_A_RUN)]
YAML = 'version: "1.0"\nblocks:\n' + "".join(
    f"  {name}:\n    type: code\n    code: |\n      def main(data):\n          return 'ok {name}'\n"
    "    assertions:\n      - {type: contains, value: ok}\n"
    + (f"    depends: {BLOCKS[n - 1]}\n" if n else "")
    for n, name in enumerate(BLOCKS)
)


def stored_workflow(slug: str = "stored") -> Workflow:
    """The workflow whose runs are filled in."""
    return services.save_version(slug, YAML).workflow


@transaction.atomic
def fill(workflow: Workflow, runs: int) -> None:
    """Add completed runs of ten nodes each, until the workflow has `runs` of them."""
    have = Run.objects.filter(workflow=workflow).count()
    if runs <= have:
        return
    with connection.cursor() as cursor:
        _copy_rows(cursor, _model_run(workflow), have + 1, runs)
    Workflow.objects.filter(pk=workflow.pk).update(last_run_number=runs)
    BlockStatistics.objects.filter(workflow=workflow).update(count=runs)
    RunTotals.objects.all().delete()
    totals.settle()  # as the sweep does
    if connection.vendor == "postgresql":  # as autovacuum does by and by, where it is on
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def _model_run(workflow: Workflow) -> Run:
    """One real run with its nodes, of which the others are copies."""
    found = Run.objects.filter(workflow=workflow, number=1).first()
    if found:
        return found
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


def _copy_rows(cursor, model: Run, first: int, last: int) -> None:  # type: ignore[no-untyped-def]
    """Copies of the model run, numbered, each a minute before the next."""
    is_sqlite = connection.vendor == "sqlite"
    numbers = (
        "WITH RECURSIVE n(i) AS (SELECT %s UNION ALL SELECT i + 1 FROM n WHERE i < %s) "
        if is_sqlite
        else "WITH n AS (SELECT generate_series(%s::int, %s::int) AS i) "
    )
    prefix = f"{model.workflow_id:016x}"  # ids of different workflows must differ
    key = (
        f"'{prefix}' || printf('%%016x', n.i)"
        if is_sqlite
        else f"('{prefix}' || lpad(to_hex(n.i), 16, '0'))::uuid"
    )
    moment = (
        "strftime('%%Y-%%m-%%d %%H:%%M:%%f', {column}, '-' || (%s - n.i) || ' minutes')"
        if is_sqlite
        else "{column} - make_interval(mins => %s - n.i)"
    )
    runs, nodes = Run._meta.db_table, RunNode._meta.db_table
    columns = [field.column for field in Run._meta.concrete_fields]
    chosen, values = [], []
    for column in columns:
        if column == "id":
            chosen.append(key)
        elif column == "number":
            chosen.append("n.i")
        elif column in ("created_at", "started_at", "finished_at", "observed_at"):
            chosen.append(moment.format(column=f"m.{column}"))
            values.append(last)
        else:
            chosen.append(f"m.{column}")
    model_key = Run._meta.pk.get_db_prep_value(model.pk, connection)
    cursor.execute(
        f"INSERT INTO {runs} ({', '.join(columns)}) {numbers} SELECT {', '.join(chosen)} FROM n, {runs} m WHERE m.id = %s AND n.i > 1",
        [first, last, *values, model_key],
    )
    columns = [field.column for field in RunNode._meta.concrete_fields if field.column != "id"]
    chosen = [key if column == "run_id" else f"m.{column}" for column in columns]
    cursor.execute(
        f"INSERT INTO {nodes} ({', '.join(columns)}) {numbers} SELECT {', '.join(chosen)} FROM n, {nodes} m WHERE m.run_id = %s AND n.i > 1",
        [first, last, model_key],
    )
    _copy_observations(cursor, numbers, key, moment, model_key, first, last)


def _copy_observations(  # type: ignore[no-untyped-def]
    cursor, numbers: str, key: str, moment: str, model_key: object, first: int, last: int
) -> None:
    """Copies of what the model run said about its blocks, if it was observed."""
    table = Observation._meta.db_table
    columns = [field.column for field in Observation._meta.concrete_fields if field.column != "id"]
    replaced = {
        "run_id": key,
        "number": "n.i",
        "run_number": "n.i",
        "at": moment.format(column="m.at"),
    }
    chosen = [replaced.get(column, f"m.{column}") for column in columns]
    cursor.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) {numbers} SELECT {', '.join(chosen)} FROM n, {table} m WHERE m.run_id = %s AND n.i > 1",
        [first, last, last, model_key],
    )
