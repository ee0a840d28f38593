"""Runs one block. Touches no table: the executor records what this gives or raises."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from workflows_app.engine.blocks.base import BLOCKS, Block, Call, Tools
from workflows_app.engine.definition import BaseBlockDef, WorkflowDefinition
from workflows_app.engine.records import Step
from workflows_app.engine.results import BlockFailure, BlockResult, plausible
from workflows_app.engine.values.context import RunContext
from workflows_app.engine.values.exits import choose_exit
from workflows_app.engine.values.outputs import storable


async def run_block(
    step: Step, definition: WorkflowDefinition, context: RunContext, tools: Tools
) -> BlockResult:
    """Execute one node, within its time and limits; raises `BlockFailure` when it cannot finish."""
    block = definition.blocks[step.block_id]
    call = Call(step, definition, context.at(step), tools)
    try:
        call.warnings.extend(tools.spend.check_start(block.id))
        result = _storable(await _within_time(BLOCKS[block.type](call), block, tools))
        exit_handle = result.exit_handle
        if step.branch is None:
            exit_handle = choose_exit(block, result.output, exit_handle, call.context)
    except BlockFailure as failure:
        failure.kind, failure.message = storable(failure.kind), storable(failure.message)
        failure.details = storable(failure.details)
        raise
    details = {**result.details, "warnings": call.warnings} if call.warnings else result.details
    return replace(result, exit_handle=exit_handle, details=details)


def _storable(result: BlockResult) -> BlockResult:
    """The result as every database takes it, whatever a provider or code gave: else the block would run again."""
    tokens = result.tokens
    is_plausible = tokens is None or None not in (plausible(tokens.prompt), plausible(tokens.completion))
    return replace(
        result,
        output=storable(result.output),
        exit_handle=storable(result.exit_handle),
        latency_ms=plausible(result.latency_ms),
        cost_usd=plausible(result.cost_usd),
        tokens=tokens if is_plausible else None,
        prompt=storable(result.prompt),
        error=storable(result.error),
        details=storable(result.details),
    )


async def _within_time(runner: Block[Any], block: BaseBlockDef, tools: Tools) -> BlockResult:
    """Run it for as long as its own time-out and every cap on duration allow."""
    seconds, kind = block.timeout_seconds, "timeout"
    message = f"Block '{block.id}' did not finish within {seconds:g} seconds."
    left = tools.spend.remaining_seconds(block.id)
    if left is not None and left[0] < seconds:
        seconds, kind = max(left[0], 0.001), "limit"
        message = f"Limit of {left[1]}: the time it may take ran out while block '{block.id}' was running."
    if runner.keeps_own_time:
        try:
            return await runner.run(seconds)
        except BlockFailure as failure:
            if failure.kind == "timeout" and kind == "limit":
                raise BlockFailure(kind, message, details=failure.details) from None
            raise
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await runner.run(seconds)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise BlockFailure(kind, message, is_retryable=kind == "timeout") from None


def next_attempt(block: BaseBlockDef, failure: BlockFailure, attempt: int) -> float | None:
    """The pause in seconds before attempt number `attempt` is followed by another; None when it was the last."""
    retry = block.retry_config
    if retry is None or not failure.is_retryable or attempt >= retry.max_attempts:
        return None
    refused = {kind.casefold() for kind in retry.non_retryable_errors}
    return None if failure.kind.casefold() in refused else retry.delay_seconds(attempt)
