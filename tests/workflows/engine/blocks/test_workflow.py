"""Child runs as a block sees them, and trying again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from tests.workflows.engine.plans import code, define
from tests.workflows.souls import run_one, run_to_end, tools_for
from workflows_app.engine.blocks.base import ChildResult
from workflows_app.engine.definition import Limits, RetryConfig, WorkflowBlockDef
from workflows_app.engine.execute import next_attempt
from workflows_app.engine.limits import Spend
from workflows_app.engine.results import BlockFailure, Tokens


class Children:
    """Stands for the executor: answers every child run the same way."""

    def __init__(self, **result: Any) -> None:
        self.result = ChildResult(**{"run_id": "c-1", "status": "completed", **result})
        self.started: list[tuple[str, dict[str, Any], int]] = []

    async def __call__(self, workflow_ref: str, inputs: Mapping[str, Any], max_depth: int) -> ChildResult:
        self.started.append((workflow_ref, dict(inputs), max_depth))
        await asyncio.sleep(0)
        return self.result


def child(**keys: Any) -> WorkflowBlockDef:
    return WorkflowBlockDef(id="sub", workflow_ref="notes", **keys)


async def test_inputs_and_outputs_are_mapped() -> None:
    children = Children(
        outputs={"text": "done", "count": 3}, cost_usd=Decimal("0.5"), tokens=Tokens(prompt=7, completion=2)
    )
    definition = define(child(inputs={"topic": "inputs.subject"}, outputs={"summary": "text"}, max_depth=2))
    result = await run_one(
        definition, tools_for(definition, run_child=children), inputs={"subject": "tea", "other": 1}
    )
    assert children.started == [("notes", {"topic": "tea"}, 2)]
    assert (result.output, result.exit_handle) == ('{"summary": "done"}', "completed")
    assert (result.cost_usd, result.tokens) == (Decimal("0.5"), Tokens(prompt=7, completion=2))
    assert result.details["child_run"] == "c-1"


async def test_without_a_mapping_all_outputs_come_through() -> None:
    definition = define(child())
    children = Children(outputs={"text": "done", "count": 3})
    result = await run_one(definition, tools_for(definition, run_child=children))
    assert result.output == '{"text": "done", "count": 3}'


async def test_an_output_the_child_does_not_give_fails_the_block() -> None:
    definition = define(child(outputs={"summary": "txt"}))
    children = Children(outputs={"text": "done"})
    with pytest.raises(BlockFailure, match=r"Child 'notes' gave no output 'txt'; it gave text."):
        await run_one(definition, tools_for(definition, run_child=children))


async def test_a_failed_child_fails_the_block_unless_caught() -> None:
    children = Children(status="failed", error={"type": "timeout", "message": "Too slow."})
    definition = define(child())
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools_for(definition, run_child=children))
    assert caught.value.to_dict() == {
        "type": "child_failed",
        "message": "Child run of 'notes' failed: Too slow.",
    }
    assert caught.value.details == {"child_run": "c-1"}

    definition = define(child(on_error="catch"))
    plan, results = await run_to_end(definition, tools_for(definition, run_child=children))
    assert plan.failure is None
    assert results["sub"].error == caught.value.to_dict()  # type: ignore[union-attr]
    assert plan.context.records["sub"].exit_handle == "error"


async def test_what_a_child_took_counts_against_the_caps() -> None:
    definition = define(child(), limits=Limits(token_cap=10))
    spend = Spend(definition)
    children = Children(tokens=Tokens(prompt=9, completion=2))
    tools = tools_for(definition, run_child=children, spend=spend)
    await run_one(definition, tools)
    with pytest.raises(BlockFailure, match="Limit of the run: the 10 tokens it may use are used"):
        await run_one(definition, tools)
    assert len(children.started) == 1


@pytest.mark.parametrize(
    ("config", "delays"),
    [
        (None, [None]),
        (RetryConfig(), [1.0, 1.0, None]),
        (RetryConfig(max_attempts=4, backoff="exponential", backoff_base_seconds=0.5), [0.5, 1.0, 2.0, None]),
        (RetryConfig(max_attempts=1), [None]),
        (RetryConfig(non_retryable_errors=("valueerror",)), [None]),
    ],
)
def test_a_failed_block_is_tried_again_as_configured(
    config: RetryConfig | None, delays: list[float | None]
) -> None:
    block = code("a", retry_config=config)
    failure = BlockFailure("ValueError", "odd", is_retryable=True)
    assert [next_attempt(block, failure, attempt) for attempt in range(1, len(delays) + 1)] == delays


def test_what_cannot_get_better_is_not_tried_again() -> None:
    failure = BlockFailure("limit", "spent", is_retryable=False)
    assert next_attempt(code("a", retry_config=RetryConfig()), failure, 1) is None
