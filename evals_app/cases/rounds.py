"""Cases that execute blocks: several at once, each as often as its repeats ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from evals_app.assertions import AssertionContext
from evals_app.cases.budget import OVER_BUDGET
from evals_app.cases.document import Document
from evals_app.cases.execution import Execution, Workshop, context_of, needed_blocks
from evals_app.cases.prepare import AskedBlock, PreparedCase
from evals_app.cases.results import ERROR, FAILED, Attempt, BlockScore, CaseResult, NodeOutcome
from evals_app.cases.suite import Evaluation, attempt_of, decide, skipped
from evals_app.cases.surroundings import Surroundings
from workflows_app.engine.results import BlockFailure

Settle = Callable[[int, CaseResult], None]

# A block that failed for one of these says nothing about the workflow: the case could not be tried.
NOT_THE_WORKFLOW = frozenset(
    {
        OVER_BUDGET,
        "auth",
        "blocked_address",
        "no_sandbox",
        "quota",
        "rate_limited",
        "sandbox_unavailable",
        "server_error",
        "unknown_provider",
        "unknown_soul",
        "unknown_workflow",
        "unreachable",
    }
)


def execute_all(
    evaluation: Evaluation,
    document: Document,
    waiting: Mapping[int, PreparedCase],
    surroundings: Surroundings | None,
    settle: Settle,
) -> None:
    """Run these cases to their verdicts; must not be called from a running event loop."""
    asyncio.run(_execute_all(evaluation, document, waiting, surroundings or Surroundings(), settle))


async def _execute_all(
    evaluation: Evaluation,
    document: Document,
    waiting: Mapping[int, PreparedCase],
    surroundings: Surroundings,
    settle: Settle,
) -> None:
    workshop = Workshop(surroundings, evaluation.budget)
    places = asyncio.Semaphore(evaluation.options.cases_at_once)

    async def one(at: int, prepared: PreparedCase) -> None:
        async with places:
            reason = evaluation.why_skipped()
            settle(at, skipped(prepared, reason) if reason else await _run_case(document, prepared, workshop))

    try:
        async with asyncio.TaskGroup() as group:
            for at, prepared in waiting.items():
                group.create_task(one(at, prepared))
    finally:
        await surroundings.close()


async def _run_case(document: Document, prepared: PreparedCase, workshop: Workshop) -> CaseResult:
    tries = [_try_case(document, prepared, workshop) for _ in range(prepared.case.repeats)]
    return decide(prepared, tuple(await asyncio.gather(*tries)))


async def _try_case(document: Document, prepared: PreparedCase, workshop: Workshop) -> Attempt:
    """Execute what the asked blocks need, then ask."""
    started = time.perf_counter()
    case = prepared.case
    try:
        execution = Execution(
            document.definition,
            case.inputs,
            workshop,
            fixtures=case.fixtures,
            needed=needed_blocks(document.definition, [block.block_id for block in prepared.blocks]),
        )
    except BlockFailure as failure:
        return Attempt(status=FAILED, score=0.0, error=failure.message)
    await execution.run()
    blocks = tuple([await _score(block, execution) for block in prepared.blocks])
    attempt = attempt_of(blocks, seconds=time.perf_counter() - started)
    failed = [node for node in execution.nodes if node.error]
    is_broken = any(node.error and node.error["type"] in NOT_THE_WORKFLOW for node in failed)
    failure_told = execution.plan.failure
    return replace(
        attempt,
        status=ERROR if is_broken and attempt.status == FAILED else attempt.status,
        error=attempt.error or (failure_told.message if failure_told else None),
        cost_usd=execution.cost_usd,
        nodes=tuple(execution.nodes),
        inputs=execution.inputs,
        run_failed=failure_told is not None,
    )


async def _score(block: AskedBlock, execution: Execution) -> BlockScore:
    """Ask the last output of a block; one that gave none has failed all that was asked of it."""
    record = execution.plan.context.records.get(block.block_id)
    if record is None:
        failure = execution.plan.failure
        why = failure.message if failure else "it was not executed: no route led to it"
        return BlockScore(block.block_id, 0.0, False, error=why)
    if record.status != "completed":
        why = str((record.error or {}).get("message", "it failed"))
        return BlockScore(block.block_id, 0.0, False, error=why)
    node = _node_of(execution, record.node_id, record.iteration)
    context = context_of(execution, node) if node else AssertionContext(output=record.output)
    is_frozen = node is not None and node.is_frozen
    return await asyncio.to_thread(block.grade, context, is_frozen=is_frozen)


def _node_of(execution: Execution, node_id: str, iteration: int) -> NodeOutcome | None:
    found = [node for node in execution.nodes if (node.node_id, node.iteration) == (node_id, iteration)]
    return found[-1] if found else None
