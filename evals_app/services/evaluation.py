"""Checking the assertions of a finished node, and writing the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Q

from evals_app.block_assertions import context_for_node, plan_for
from evals_app.block_metrics import node_values
from evals_app.monitoring.baselines import baseline_of, delta_of
from workflows_app import clock, events
from workflows_app.metrics import EVALUATION
from workflows_app.models import EventName, Run, RunNode, RunStatus
from workflows_app.services.checkpoints import node_facts, verdict_of_nodes

log = structlog.get_logger("runsight.evals")


def evaluate_node(node: RunNode) -> bool:
    """Grade a finished node and compare it with its baseline; False if that was done before, or is another's to do."""
    fields = grade(node, baseline_of(node.run.workflow_id, node.node_id))
    fields["evaluated_at"] = clock.now()
    with transaction.atomic():
        if not _is_ours(node.run):
            return False
        if not RunNode.objects.filter(pk=node.pk, evaluated_at=None).update(**fields):
            node.refresh_from_db(fields=list(fields))
            return False
        if fields["eval_results"] is not None:
            _append_event(node, fields)
    # Only after the commit: whoever holds the node must not take it for evaluated when that failed.
    for name, value in fields.items():
        setattr(node, name, value)
    return True


def _is_ours(run: Run) -> bool:
    """Lock the run, unless it goes on under another fence than the one we know: then its new owner evaluates."""
    ours = Q(fence=run.fence) | ~Q(status=RunStatus.RUNNING)
    rows = Run.objects.select_for_update(no_key=True).filter(ours, pk=run.pk)
    return rows.values_list("pk").first() is not None


def grade(node: RunNode, baseline: Mapping[str, Any] | None) -> dict[str, Any]:
    """The eval fields of a node, not written; the results are None if its block has no assertions.

    The one place where a broken evaluation is caught: it is recorded, and neither passes nor stops the run.
    """
    try:
        fields = _checked(node)
        return fields | {"delta": delta_of({**node_values(node), "score": fields["eval_score"]}, baseline)}
    except DatabaseError:  # not about this node: it stays unevaluated, and is found again from its row
        raise
    except Exception as error:
        log.exception("evaluation broke", node=node.pk)
        reason = f"The evaluation broke: {type(error).__name__}: {error}"
        results = {"assertions": [], "named_scores": {}, "error": reason}
        return {"eval_score": None, "eval_passed": False, "eval_results": results, "delta": None}


def _checked(node: RunNode) -> dict[str, Any]:
    plan = plan_for(node.run.version, node.node_id)
    if plan is None:
        return {"eval_score": None, "eval_passed": None, "eval_results": None}
    with EVALUATION.time():
        result = plan.assertions.run(context_for_node(node))
    details = result.to_dict()
    results = {"assertions": details["assertions"], "named_scores": details["named_scores"], "error": None}
    return {
        "eval_score": result.aggregate_score,
        "eval_passed": result.passed(),
        "eval_results": results,
    }


def count_verdicts(results: dict[str, Any] | None) -> dict[str, int]:
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


def eval_event(node: RunNode, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The data of `node_eval_complete`."""
    return {
        **node_facts(node),
        "eval_score": fields["eval_score"],
        "passed": fields["eval_passed"],
        **fields["eval_results"],
        "delta": fields["delta"],
    }


def _append_event(node: RunNode, fields: dict[str, Any]) -> None:
    run = node.run
    seq = events.advance(run, add=count_verdicts(fields["eval_results"]))
    events.append(run, seq, EventName.NODE_EVAL_COMPLETE, **eval_event(node, fields))
    if run.is_terminal:  # it ended meanwhile: it was cancelled, or its process died
        run.eval_score, run.eval_passed = verdict_of_nodes(run)
        events.advance(run, count=0, change={"eval_score": run.eval_score, "eval_passed": run.eval_passed})
