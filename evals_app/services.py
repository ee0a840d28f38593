"""Evaluating nodes and observing finished runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from django.db import connection, transaction

from evals_app import regressions, statistics
from evals_app.assertions import AssertionContext, AssertionsResult
from evals_app.baselines import Measured, baseline_of, delta_of
from evals_app.models import (
    BlockStatistics,
    Observation,
)
from evals_app.plans import BlockPlan, plan_for
from workflows_app import clock, events, rows, totals
from workflows_app.metrics import EVALUATION
from workflows_app.models import (
    Environment,
    EventName,
    NodeStatus,
    Run,
    RunNode,
    RunStatus,
    Source,
    Workflow,
    WorkflowVersion,
)
from workflows_app.services import node_facts, verdict_of

log = structlog.get_logger("runsight.evals")


# One node


def evaluate_node(node: RunNode) -> bool:
    """Grade a finished node and compare it with its baseline; False if that was done before."""
    run = node.run
    plan = plan_for(run.version, node.node_id)
    fields = grade(node, plan)
    measured = Measured.of(node, fields["eval_score"])
    fields["delta"] = delta_of(measured, baseline_of(run.workflow_id, node.node_id))
    return _write_evaluation(node, fields, has_assertions=plan is not None)


def record_broken_evaluation(node: RunNode, error: Exception) -> None:
    """The evaluator itself broke: say so where people look; never a pass, never the end of the run."""
    fields = broken(f"The evaluation broke: {type(error).__name__}: {error}") | {"delta": None}
    _write_evaluation(node, fields, has_assertions=True)


def grade(node: RunNode, plan: BlockPlan | None) -> dict[str, Any]:
    """The eval fields of a node, nothing written; all None without assertions."""
    if plan is None:
        return {"eval_score": None, "eval_passed": None, "eval_results": None}
    try:
        with EVALUATION.time():
            result = plan.assertions.run(context_of(node))
    except Exception as error:
        log.exception("evaluation broke", node=node.pk)
        return broken(f"The evaluation broke: {type(error).__name__}: {error}")
    return {
        "eval_score": result.aggregate_score,
        "eval_passed": result.passed(),
        "eval_results": results_of(result),
    }


def broken(reason: str) -> dict[str, Any]:
    return {
        "eval_score": None,
        "eval_passed": False,
        "eval_results": {"assertions": [], "named_scores": {}, "error": reason},
    }


def results_of(result: AssertionsResult) -> dict[str, Any]:
    """`eval_results` as it is stored."""
    told = result.to_dict()
    return {"assertions": told["assertions"], "named_scores": told["named_scores"], "error": None}


def context_of(node: RunNode) -> AssertionContext:
    """What the assertions of a node may look at."""
    run = node.run
    return AssertionContext(
        output=node.output,
        prompt=node.prompt,
        prompt_hash=node.prompt_hash,
        soul_id=node.soul_id,
        soul_version=node.soul_version,
        block_id=node.node_id,
        block_type=node.block_type,
        cost_usd=node.cost_usd,
        total_tokens=node.total_tokens,
        latency_ms=node.latency_ms,
        variables=run.inputs,
        run_id=str(run.pk),
        workflow_id=run.workflow.slug,
    )


def tally(results: dict[str, Any] | None) -> dict[str, int]:
    """How many assertions passed, failed, or could not be checked."""
    counts = {"assertions_passed": 0, "assertions_failed": 0, "assertions_error": 0}
    if results is None:
        return counts
    for one in results["assertions"]:
        verdict = "error" if one["error"] else "passed" if one["passed"] else "failed"
        counts[f"assertions_{verdict}"] += 1
    if results["error"]:
        counts["assertions_error"] += 1
    return counts


def eval_event(node: RunNode, fields: dict[str, Any]) -> dict[str, Any]:
    """The data of `node_eval_complete`."""
    results = fields["eval_results"]
    return {
        **node_facts(node),
        "eval_score": fields["eval_score"],
        "passed": fields["eval_passed"],
        "assertions": results["assertions"],
        "named_scores": results["named_scores"],
        "error": results["error"],
        "delta": fields["delta"],
    }


def _write_evaluation(node: RunNode, fields: dict[str, Any], *, has_assertions: bool) -> bool:
    fields = {**fields, "evaluated_at": clock.now()}
    before = {name: getattr(node, name) for name in fields}
    try:
        return _write_at_once(node, fields, has_assertions=has_assertions)
    except BaseException:
        _set(node, before)  # rolled back: whoever holds the node must not take it for evaluated
        raise


def _write_at_once(node: RunNode, fields: dict[str, Any], *, has_assertions: bool) -> bool:
    if not has_assertions:
        return _write_fields(node, fields)  # one statement, so a transaction of its own
    with transaction.atomic():
        if not _write_fields(node, fields):
            return False
        seq = events.advance(node.run, add=tally(fields["eval_results"]))
        events.append(node.run, seq, EventName.NODE_EVAL_COMPLETE, **eval_event(node, fields))
        if node.run.is_terminal:
            _refresh_verdict(node.run)
        return True


def _write_fields(node: RunNode, fields: dict[str, Any]) -> bool:
    _set(node, fields)
    if rows.update(node, fields, only_if_null="evaluated_at"):
        return True
    node.refresh_from_db(fields=list(fields))
    return False


def _set(node: RunNode, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(node, name, value)


def _refresh_verdict(run: Run) -> None:
    """A node graded after its run ended (cancelled meanwhile, or its process died) counts in the run's verdict."""
    run.eval_score, run.eval_passed = verdict_of(run)
    rows.update(run, ("eval_score", "eval_passed"))
    totals.run_changed(run)


# One run


def counts_as_normal(run: Run) -> bool:
    """Whether a run feeds baselines: completed, in production, and not an eval."""
    return (
        run.status == RunStatus.COMPLETED
        and run.environment == Environment.PRODUCTION
        and run.source != Source.EVAL
    )


@transaction.atomic
def observe_run(run: Run) -> bool:
    """Let a finished run speak about each of its blocks, once; False if it has, or has nothing to say."""
    if run.observed_at is not None or not run.is_terminal:
        return False
    run.observed_at = clock.now()
    if not rows.update(run, ["observed_at"], only_if_null="observed_at") or not counts_as_normal(run):
        return False
    is_done = "run_id = %s AND status = %s ORDER BY iteration, attempt"
    values = [rows.key_of(run), NodeStatus.COMPLETED]
    return observe(run, rows.select(RunNode, is_done, values, without=("output", "prompt")))


def observe(run: Run, finished: Iterable[RunNode]) -> bool:
    """Take in what a run that counts as normal says; `finished` are its completed nodes, by iteration.

    Within a transaction: from here to its end, runs of the same workflow take turns.
    """
    nodes = last_rounds(finished)
    if not nodes:
        return False
    settings = statistics.evidence_settings(run.version.definition.evidence)
    blocks = lock_statistics(run.workflow, nodes)
    is_new_version = any(_version_seen(row) != run.version.number for row in blocks.values())
    observations = []
    # In key order: two runs that end together never wait for each other in a ring.
    for node_id, row in blocks.items():
        observation = _observation(run, nodes[node_id], row.count + 1)
        observations.append((observation, row, statistics.take(row, observation, settings)))
    rows.update_many(list(blocks.values()), statistics.MOVED_FIELDS)
    rows.add_many([observation for observation, _, _ in observations])
    told = [
        regressions.apply(run, row, observation, change)
        for observation, row, changes in observations
        for change in changes
    ]
    if any(told):
        run.refresh_from_db(fields=["regression_count", "last_seq"])
    if is_new_version:
        regressions.resolve_removed(run)
    return True


def _version_seen(row: BlockStatistics) -> int | None:
    """The workflow version of the last run that a block's statistics know."""
    version = row.state.get("version")
    return version[0] if version else None


def last_rounds(nodes: Iterable[RunNode]) -> dict[str, RunNode]:
    """The last execution of each block; a dispatch's branches speak through the block itself."""
    return {node.node_id: node for node in nodes if "." not in node.node_id}


NAMES_OF_BLOCKS = f'SELECT node_id FROM "{BlockStatistics._meta.db_table}" WHERE'  # noqa: S608 - our own name


def lock_statistics(workflow: Workflow, node_ids: Iterable[str]) -> dict[str, BlockStatistics]:
    """The statistics rows of these blocks, made if missing, locked in key order."""
    wanted = sorted(node_ids)
    if not wanted:
        return {}
    marks = ", ".join(["%s"] * len(wanted))
    found = f"workflow_id = %s AND node_id IN ({marks})"
    values = [workflow.pk, *wanted]
    known = {node_id for (node_id,) in rows.execute(f"{NAMES_OF_BLOCKS} {found}", values).fetchall()}
    missing = [BlockStatistics(workflow=workflow, node_id=name) for name in wanted if name not in known]
    if missing:  # before any row is locked: a new row may come before a locked one in key order
        BlockStatistics.objects.bulk_create(missing, ignore_conflicts=True)
    locked = (
        "ORDER BY node_id FOR UPDATE" if connection.features.has_select_for_update else "ORDER BY node_id"
    )
    return {row.node_id: row for row in rows.select(BlockStatistics, f"{found} {locked}", values)}


def _observation(run: Run, node: RunNode, number: int) -> Observation:
    results = node.eval_results or {"assertions": [], "named_scores": {}}
    return Observation(
        workflow_id=run.workflow_id,
        node_id=node.node_id,
        number=number,
        run=run,
        run_number=run.number,
        at=node.finished_at or run.finished_at or clock.now(),
        score=node.eval_score,
        passed=node.eval_passed,
        cost_usd=node.cost_usd,
        latency_ms=node.latency_ms,
        tokens=node.total_tokens,
        workflow_version=run.version.number,
        soul_version=node.soul_version,
        assertions=_verdict_by_key(run.version, node.node_id, results["assertions"]),
        named_scores=results["named_scores"],
    )


def _verdict_by_key(
    version: WorkflowVersion, node_id: str, assertions: list[dict[str, Any]]
) -> dict[str, bool]:
    plan = plan_for(version, node_id)
    verdicts: dict[str, bool] = {}
    if plan is not None:
        for one in assertions:
            key = plan.keys[one["index"]]
            verdicts[key] = verdicts.get(key, True) and bool(one["passed"])
    return verdicts


# Rebuilding


@transaction.atomic
def rebuild_statistics(workflow: Workflow) -> int:
    """Make a workflow's statistics anew from its observations alone; the number of observations read."""
    settings = {
        version.number: statistics.evidence_settings(version.definition.evidence)
        for version in workflow.versions.select_related("workflow")
    }
    names = Observation.objects.filter(workflow=workflow).values_list("node_id", flat=True).distinct()
    read = 0
    for row in lock_statistics(workflow, names).values():
        row.count, row.state, row.slices, row.baseline, row.verdicts = 0, {}, {}, {}, {}
        for observation in row_observations(row).iterator(chunk_size=500):
            statistics.take(row, observation, settings[observation.workflow_version])
            read += 1
        row.save()
    return read


def row_observations(row: BlockStatistics) -> Any:
    return Observation.objects.filter(workflow_id=row.workflow_id, node_id=row.node_id).order_by("number")
