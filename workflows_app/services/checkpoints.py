"""The checkpoints of a run: each is one transaction under the run's fence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from workflows_app import clock, events, metrics, rows, totals
from workflows_app.credentials import redactor
from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.engine.records import Step
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.leases import Lease
from workflows_app.models import EventName, NodeStatus, Run, RunNode, RunStatus
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
    node = RunNode(
        run=lease.run,
        node_id=step.node_id,
        block_type=block_type,
        iteration=step.iteration,
        attempt=attempt,
        status=NodeStatus.RUNNING,
        started_at=clock.now(),
    )
    rows.insert(node)
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
    totals.run_changed(lease.run)
    _complete(node, result)
    rows.update(node, _RESULT_FIELDS)
    events.append(
        lease.run,
        seq,
        EventName.NODE_COMPLETED,
        **node_facts(node),
        latency_ms=node.latency_ms,
        cost_usd=node.cost_usd,
        tokens=node.tokens,
        exit_handle=node.exit_handle,
        preview=node.output[:PREVIEW_CHARACTERS],
    )
    transaction.on_commit(lambda: block_completed.send_robust(sender=RunNode, node=node), robust=True)


_RESULT_FIELDS = (
    "status",
    "output",
    "cost_usd",
    "tokens",
    "latency_ms",
    "soul_id",
    "soul_version",
    "prompt",
    "prompt_hash",
    "exit_handle",
    "error",
    "details",
    "finished_at",
)


def _complete(node: RunNode, result: BlockResult) -> None:
    redact = redactor().redact
    node.status = NodeStatus.COMPLETED
    node.finished_at = clock.now()
    node.output = redact(result.output)
    node.cost_usd = None if result.cost_usd is None else float(result.cost_usd)
    node.tokens = result.tokens.to_dict() if result.tokens else None
    node.latency_ms = result.latency_ms
    node.soul_id = result.soul_id
    node.soul_version = result.soul_version
    node.prompt = redact(result.prompt)
    node.prompt_hash = result.prompt_hash
    node.exit_handle = result.exit_handle
    node.error = redactor().redact_json(result.error)
    node.details = redactor().redact_json(result.details)


@transaction.atomic
def fail_node(lease: Lease, node: RunNode, failure: BlockFailure, *, will_retry: bool) -> None:
    """Record that an attempt at a block failed."""
    seq = events.advance(lease.run, fence=lease.fence)
    node.status = NodeStatus.FAILED
    node.finished_at = clock.now()
    node.error = {**failure.to_dict(), "message": redactor().redact(failure.message)}
    node.details = redactor().redact_json({**failure.details, "is_retryable": failure.is_retryable})
    rows.update(node, ("status", "finished_at", "error", "details"))
    events.append(
        lease.run, seq, EventName.NODE_FAILED, **node_facts(node), error=node.error, will_retry=will_retry
    )


@transaction.atomic
def skip_nodes(lease: Lease, node_ids: Iterable[str], definition: WorkflowDefinition) -> list[RunNode]:
    """Record the blocks that a route passed by."""
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
    run.eval_score, run.eval_passed = verdict_of(run)
    for name, value in fields.items():
        setattr(run, name, value)
    written = ("status", "finished_at", "duration_ms", "eval_score", "eval_passed", *fields)
    seq = events.advance(run, fence=fence, change={name: getattr(run, name) for name in written})
    totals.run_changed(run)
    events.append(run, seq, END_EVENT[status], status=status, **run_facts(run))
    metrics.RUNS_ENDED.labels(status).inc()
    transaction.on_commit(lambda: run_finished.send_robust(sender=Run, run=run), robust=True)


VERDICTS = (
    f'SELECT node_id, eval_score, eval_passed FROM "{RunNode._meta.db_table}" '  # noqa: S608 - our own name
    "WHERE run_id = %s AND eval_passed IS NOT NULL ORDER BY iteration, attempt"
)


def verdict_of(run: Run) -> tuple[float | None, bool | None]:
    """Mean score and joint verdict over the evaluated nodes, a loop's last round standing for it."""
    return joint_verdict(rows.execute(VERDICTS, [rows.key_of(run)]).fetchall())


def joint_verdict(
    verdicts: Iterable[tuple[str, float | None, bool | None]],
) -> tuple[float | None, bool | None]:
    """Mean score and joint verdict of (node_id, score, passed) in the order of their rounds; None is not evaluated."""
    last = {node_id: (score, passed) for node_id, score, passed in verdicts if passed is not None}
    scores = [score for score, _ in last.values() if score is not None]
    mean = sum(scores) / len(scores) if scores else None
    return mean, all(passed for _, passed in last.values()) if last else None


# What events say


def node_facts(node: RunNode) -> dict[str, Any]:
    return {"node": node.pk, "node_id": node.node_id, "iteration": node.iteration, "attempt": node.attempt}


def run_facts(run: Run) -> dict[str, Any]:
    return {
        "duration_ms": run.duration_ms,
        "cost_usd": run.cost_usd,
        "eval_score": run.eval_score,
        "eval_passed": run.eval_passed,
    }
