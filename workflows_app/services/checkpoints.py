"""The checkpoints of a run: each is one transaction under the run's fence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from workflows_app import clock, events, metrics
from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.engine.records import Step
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.models import EventName, NodeStatus, Run, RunNode, RunStatus
from workflows_app.security.credentials import redactor
from workflows_app.services.leases import Lease
from workflows_app.signals import block_completed, run_finished

PREVIEW_CHARACTERS = 280


@transaction.atomic
def begin_run(lease: Lease) -> None:
    """Announce that execution has begun; acts once however often a run is taken over."""
    run = lease.run
    if run.started_at is not None:
        return
    run.started_at = clock.shared_now()
    seq = events.advance(run, fence=lease.fence, change={"started_at": run.started_at})
    events.append(run, seq, EventName.RUN_STARTED, status=RunStatus.RUNNING, **run_facts(run))
    metrics.QUEUE_DELAY.observe(max(0.0, (run.started_at - run.created_at).total_seconds()))


@transaction.atomic
def start_node(lease: Lease, step: Step, block_type: str, attempt: int) -> RunNode:
    """Record that a block is being executed."""
    seq = events.advance(lease.run, fence=lease.fence)
    node = RunNode.objects.create(
        run=lease.run,
        node_id=step.node_id,
        block_type=block_type,
        iteration=step.iteration,
        attempt=attempt,
        status=NodeStatus.RUNNING,
        started_at=clock.now(),
    )
    events.append(lease.run, seq, EventName.NODE_STARTED, **node_facts(node), block_type=block_type)
    return node


@transaction.atomic
def finish_node(lease: Lease, node: RunNode, result: BlockResult) -> None:
    """Record a block's output and announce it. The only way a node completes."""
    spent: dict[str, float] = {"nodes_done": 1}
    if result.cost_usd is not None:
        spent["cost_usd"] = float(result.cost_usd)
    if result.tokens is not None:
        spent |= {"prompt_tokens": result.tokens.prompt, "completion_tokens": result.tokens.completion}
    seq = events.advance(lease.run, fence=lease.fence, add=spent, change={"takeovers": 0})
    redact, redact_json = redactor().redact, redactor().redact_json
    facts = result.facts() | {"output": redact(result.output), "prompt": redact(result.prompt)}
    _update(
        node,
        status=NodeStatus.COMPLETED,
        finished_at=clock.now(),
        exit_handle=result.exit_handle,
        error=redact_json(result.error),
        details=redact_json(result.details),
        **facts,
    )
    events.append(lease.run, seq, EventName.NODE_COMPLETED, **result_facts(node))
    transaction.on_commit(lambda: block_completed.send_robust(sender=RunNode, node=node), robust=True)


def _update(node: RunNode, **fields: Any) -> None:
    """Write the outcome of a node that is being executed: a second one, of a repeated write, is refused."""
    if not RunNode.objects.filter(pk=node.pk, status=NodeStatus.RUNNING).update(**fields):
        raise RuntimeError(f"{node.node_id} is not being executed any more.")
    for name, value in fields.items():
        setattr(node, name, value)


@transaction.atomic
def fail_node(lease: Lease, node: RunNode, failure: BlockFailure, *, will_retry: bool) -> None:
    """Record that an attempt at a block failed."""
    seq = events.advance(lease.run, fence=lease.fence)
    _update(
        node,
        status=NodeStatus.FAILED,
        finished_at=clock.now(),
        error={**failure.to_dict(), "message": redactor().redact(failure.message)},
        details=redactor().redact_json({**failure.details, "is_retryable": failure.is_retryable}),
    )
    events.append(
        lease.run, seq, EventName.NODE_FAILED, **node_facts(node), error=node.error, will_retry=will_retry
    )


@transaction.atomic
def skip_nodes(lease: Lease, node_ids: Iterable[str], definition: WorkflowDefinition) -> list[RunNode]:
    """Record the blocks that were not on the route taken."""
    events.advance(lease.run, fence=lease.fence, count=0)
    moment = clock.now()
    return RunNode.objects.bulk_create(
        [
            RunNode(
                run=lease.run,
                node_id=node_id,
                block_type=definition.blocks[node_id.partition(".")[0]].type,
                status=NodeStatus.SKIPPED,
                finished_at=moment,
            )
            for node_id in node_ids
        ]
    )


END_EVENT = {
    RunStatus.COMPLETED: EventName.RUN_COMPLETED,
    RunStatus.FAILED: EventName.RUN_FAILED,
    RunStatus.CANCELLED: EventName.RUN_CANCELLED,
}


@transaction.atomic
def finish_run(
    lease: Lease,
    status: RunStatus,
    *,
    outputs: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """Bring a run to its end. Its nodes' verdicts become the run's."""
    redact = redactor().redact_json
    end_run(lease.run, status, fence=lease.fence, outputs=redact(outputs), error=redact(error))


def end_run(run: Run, status: RunStatus, *, fence: int | None = None, **fields: Any) -> None:
    run.status = status
    begun = run.started_at or run.created_at
    run.finished_at = max(begun, clock.shared_now())  # later, even if the clock was set back meanwhile
    run.duration_ms = (run.finished_at - begun).total_seconds() * 1000
    run.eval_score, run.eval_passed = verdict_of_nodes(run)
    for name, value in fields.items():
        setattr(run, name, value)
    written = ("status", "finished_at", "duration_ms", "eval_score", "eval_passed", *fields)
    seq = events.advance(run, fence=fence, change={name: getattr(run, name) for name in written})
    events.append(run, seq, END_EVENT[status], status=status, **run_facts(run))
    metrics.RUNS_ENDED.labels(status).inc()
    transaction.on_commit(lambda: run_finished.send_robust(sender=Run, run=run), robust=True)


def verdict_of_nodes(run: Run) -> tuple[float | None, bool | None]:
    """Mean score and joint verdict over the evaluated nodes, a loop's last round standing for it."""
    evaluated = run.nodes.filter(eval_passed__isnull=False).order_by("iteration", "attempt")
    return joint_verdict(evaluated.values_list("node_id", "eval_score", "eval_passed"))


def joint_verdict(
    verdicts: Iterable[tuple[str, float | None, bool | None]],
) -> tuple[float | None, bool | None]:
    """Mean score and joint verdict of (node_id, score, passed) in the order of their rounds; None is not evaluated."""
    last = {node_id: (score, passed) for node_id, score, passed in verdicts if passed is not None}
    scores = [score for score, _ in last.values() if score is not None]
    mean = sum(scores) / len(scores) if scores else None
    return mean, all(passed for _, passed in last.values()) if last else None


# What events contain


def node_facts(node: RunNode) -> dict[str, Any]:
    return {"node": node.pk, "node_id": node.node_id, "iteration": node.iteration, "attempt": node.attempt}


def result_facts(node: RunNode) -> dict[str, Any]:
    return {
        **node_facts(node),
        "latency_ms": node.latency_ms,
        "cost_usd": node.cost_usd,
        "tokens": node.tokens,
        "exit_handle": node.exit_handle,
        "preview": node.output[:PREVIEW_CHARACTERS],
    }


def run_facts(run: Run) -> dict[str, Any]:
    return {
        "duration_ms": run.duration_ms,
        "cost_usd": run.cost_usd,
        "eval_score": run.eval_score,
        "eval_passed": run.eval_passed,
    }
