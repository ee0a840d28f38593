"""Souls, providers and tools for tests that run blocks without a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from workflows_app.engine.blocks.base import Tools
from workflows_app.engine.definition import SoulDef, WorkflowDefinition
from workflows_app.engine.execute import run_block
from workflows_app.engine.limits import Spend
from workflows_app.engine.providers import ChatRequest, ChatResponse, Provider
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.schedule import Plan

ANALYST = SoulDef(id="analyst", role="Analyst", system_prompt="You analyse.", max_tokens=200)


class ScriptedProvider(Provider):
    """Answers as scripted, and keeps what it was asked."""

    def __init__(self, answer: str | Callable[[ChatRequest], str] = "fine", **response: Any) -> None:
        self.answer = answer
        self.response = {"prompt_tokens": 100, "completion_tokens": 20, "model": "demo-small", **response}
        self.asked: list[ChatRequest] = []
        self.sleep_seconds = 0.0
        self.error: Exception | None = None

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.asked.append(request)
        await asyncio.sleep(self.sleep_seconds)
        if self.error is not None:
            raise self.error
        text = self.answer if isinstance(self.answer, str) else self.answer(request)
        return ChatResponse(text=text, **self.response)


def tools_for(definition: WorkflowDefinition, answering: Provider | None = None, **keys: Any) -> Tools:
    """Tools with one soul and one provider under whatever name."""
    made = answering or ScriptedProvider()
    given: dict[str, Any] = {"souls": {"analyst": ANALYST}, "provider": lambda name: made, **keys}
    return Tools(spend=given.pop("spend", None) or Spend(definition), **given)


async def run_to_end(
    definition: WorkflowDefinition,
    tools: Tools,
    *,
    inputs: Mapping[str, Any] | None = None,
    finished: tuple[NodeRecord, ...] = (),
) -> tuple[Plan, dict[str, BlockResult | BlockFailure]]:
    """What the executor does, without its tables: run what is ready until nothing is."""
    plan = Plan(definition, finished, inputs=inputs)
    results: dict[str, BlockResult | BlockFailure] = {}
    while not plan.is_finished:
        for step in plan.ready():
            results[step.node_id] = result = await attempt(plan, step, tools)
            plan.record(_record(step, result))
    return plan, results


async def attempt(plan: Plan, step: Any, tools: Tools) -> BlockResult | BlockFailure:
    try:
        return await run_block(step, plan.definition, plan.context, tools)
    except BlockFailure as failure:
        return failure


def _record(step: Any, result: BlockResult | BlockFailure) -> NodeRecord:
    if isinstance(result, BlockFailure):
        return NodeRecord(
            node_id=step.node_id, iteration=step.iteration, status="failed", error=dict(result.to_dict())
        )
    return NodeRecord(
        node_id=step.node_id,
        iteration=step.iteration,
        output=result.output,
        exit_handle=result.exit_handle,
        error=result.error,
    )


async def run_one(
    definition: WorkflowDefinition,
    tools: Tools,
    *finished: NodeRecord,
    inputs: Mapping[str, Any] | None = None,
) -> BlockResult:
    """Run the first block that is ready."""
    plan = Plan(definition, finished, inputs=inputs)
    return await run_block(plan.ready()[0], definition, plan.context, tools)
