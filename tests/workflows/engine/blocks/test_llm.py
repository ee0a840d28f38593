"""Blocks that ask a soul: what is asked, what it took, and how a call fails."""

from __future__ import annotations

import asyncio
import hashlib
import time
from decimal import Decimal
from typing import Any

import pytest

from tests.workflows.engine.plans import define, dispatch, gate
from tests.workflows.souls import ANALYST, ScriptedProvider, run_one, run_to_end, tools_for
from workflows_app.engine.blocks.base import Block
from workflows_app.engine.definition import Condition, ExitCase, LlmBlockDef
from workflows_app.engine.providers import ProviderError, make_provider
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens


def llm(block_id: str, prompt: str | None = None, **keys: Any) -> LlmBlockDef:
    return LlmBlockDef(id=block_id, soul_ref="analyst", prompt=prompt, **keys)


async def test_the_soul_is_asked_the_rendered_prompt() -> None:
    provider = ScriptedProvider("an analysis", cached_tokens=40)
    definition = define(llm("a", "Analyse {{ inputs.topic }}"))
    result = await run_one(definition, tools_for(definition, provider), inputs={"topic": "tea"})
    (asked,) = provider.asked
    assert (asked.prompt, asked.system_prompt, asked.model) == ("Analyse tea", "You analyse.", "demo-small")
    assert (asked.max_tokens, asked.seed_key) == (200, "test/a")
    assert (
        result
        == BlockResult(
            output="an analysis",
            cost_usd=Decimal("0.00006"),  # 60 × 0.40 + 40 × 0.10 + 20 × 1.60 dollars a million
            tokens=Tokens(prompt=100, completion=20),
            soul_id="analyst",
            soul_version=ANALYST.version,
            prompt="Analyse tea",
            prompt_hash=hashlib.sha256(b"You analyse.\0Analyse tea").hexdigest()[:16],
            details={
                "model": "demo-small",
                "provider": "demo",
                "token_classes": {"prompt": 100, "completion": 20, "cached": 40},
                "price_table": "demo",
            },
        )
    )


async def test_the_built_in_provider_answers_with_its_own_latency() -> None:
    definition = define(llm("a", "Write a report on {{ inputs.topic }}"))
    tools = tools_for(definition, make_provider("demo"))
    first = await run_one(definition, tools, inputs={"topic": "solar power"})
    again = await run_one(definition, tools, inputs={"topic": "solar power"})
    assert first == again
    assert first.latency_ms and first.latency_ms > 100
    assert first.cost_usd and first.tokens and first.tokens.completion > 10


async def test_an_unknown_model_has_no_cost_and_an_override_gives_it_one() -> None:
    definition = define(llm("a", "x"))
    soul = {"analyst": ANALYST.__class__(id="analyst", model_name="house-model")}
    provider = ScriptedProvider(model="house-model")
    result = await run_one(definition, tools_for(definition, provider, souls=soul))
    assert result.cost_usd is None
    assert result.details["price_table"] is None
    prices = {"house-model": {"input_per_million": 1, "output_per_million": "2"}}
    result = await run_one(definition, tools_for(definition, provider, souls=soul, price_overrides=prices))
    assert result.cost_usd == Decimal("0.00014")
    assert result.details["price_table"] == "override"


async def test_unreported_tokens_stay_unknown() -> None:
    definition = define(llm("a", "x"))
    provider = ScriptedProvider(prompt_tokens=None, completion_tokens=None)
    result = await run_one(definition, tools_for(definition, provider))
    assert (result.tokens, result.cost_usd) == (None, None)


@pytest.mark.parametrize(
    ("inputs", "prompt"),
    [
        ({}, "a 1"),
        ({"instruction": "Sum it up."}, "Sum it up.\n\na:\na 1"),
    ],
)
async def test_without_a_prompt_the_soul_gets_the_instruction_and_what_the_block_depends_on(
    inputs: dict[str, str], prompt: str
) -> None:
    definition = define("z", "a", llm("b"), edges=["z > a", "a > b"])
    provider = ScriptedProvider()
    records = (NodeRecord(node_id="z", output="z 1"), NodeRecord(node_id="a", output="a 1"))
    await run_one(definition, tools_for(definition, provider), *records, inputs=inputs)
    assert provider.asked[0].prompt == prompt


async def test_without_a_prompt_a_block_with_inputs_is_asked_those() -> None:
    block = llm("b", inputs={"instruction": "inputs.task", "text": "a"})
    definition = define("a", block)
    provider = ScriptedProvider()
    record = NodeRecord(node_id="a", output="long")
    await run_one(definition, tools_for(definition, provider), record, inputs={"task": "Shorten."})
    assert provider.asked[0].prompt == "Shorten.\n\ntext:\nlong"


async def test_nothing_to_ask_fails_the_block() -> None:
    definition = define(llm("a"))
    with pytest.raises(BlockFailure, match="Block 'a' has no prompt") as caught:
        await run_one(definition, tools_for(definition))
    assert caught.value.kind == "no_prompt"


async def test_an_unknown_soul_or_provider_fails_the_block_for_good() -> None:
    definition = define(llm("a", "x"))
    for keys, kind in (
        ({"souls": {}}, "unknown_soul"),
        ({"provider": lambda name: make_provider("opnai")}, "unknown_provider"),
    ):
        with pytest.raises(BlockFailure) as caught:
            await run_one(definition, tools_for(definition, **keys))
        assert (caught.value.kind, caught.value.is_retryable) == (kind, False)


@pytest.mark.parametrize("retryable", [True, False])
async def test_a_failed_call_says_why_and_whether_to_try_again(retryable: bool) -> None:
    definition = define(llm("a", "x"))
    provider = ScriptedProvider()
    provider.error = ProviderError("The server is busy.", kind="rate_limited", retryable=retryable)
    with pytest.raises(BlockFailure) as caught:
        await run_one(definition, tools_for(definition, provider))
    assert caught.value.to_dict() == {"type": "rate_limited", "message": "The server is busy."}
    assert caught.value.is_retryable is retryable


async def test_a_slow_call_is_stopped_in_time() -> None:
    definition = define(llm("a", "x", timeout_seconds=0.05))
    provider = ScriptedProvider()
    provider.sleep_seconds = 30
    started = time.monotonic()
    with pytest.raises(BlockFailure, match=r"Block 'a' did not finish within 0.05 seconds") as caught:
        await run_one(definition, tools_for(definition, provider))
    assert (caught.value.kind, caught.value.is_retryable) == ("timeout", True)
    assert time.monotonic() - started < 5


async def test_cancelling_stops_the_call_at_once() -> None:
    definition = define(llm("a", "x"))
    provider = ScriptedProvider()
    provider.sleep_seconds = 30
    task = asyncio.create_task(run_one(definition, tools_for(definition, provider)))
    while not provider.asked:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def case(exit_name: str, key: str, operator: str, value: Any = None) -> ExitCase:
    return ExitCase(exit=exit_name, when=Condition(eval_key=key, operator=operator, value=value))


@pytest.mark.parametrize(
    ("answer", "exit_handle"),
    [('{"score": 9}', "good"), ('{"score": 2}', "poor"), ("URGENT", "urgent"), ("", "rest")],
)
async def test_exit_conditions_choose_by_the_blocks_own_result(answer: str, exit_handle: str) -> None:
    cases = (
        case("good", "blocks.a.json.score", "gte", 7),
        case("poor", "a.score", "exists"),
        case("urgent", "blocks.a.output", "contains", "URGENT"),
        ExitCase(exit="rest", default=True),
    )
    definition = define(llm("a", "x", exit_conditions=cases))
    result = await run_one(definition, tools_for(definition, ScriptedProvider(answer)))
    assert result.exit_handle == exit_handle


async def test_routes_choose_by_what_is_upstream_too() -> None:
    routes = (case("tea", "inputs.topic", "equals", "tea"),)
    definition = define(llm("a", "x", routes=routes))
    tools = tools_for(definition)
    assert (await run_one(definition, tools, inputs={"topic": "tea"})).exit_handle == "tea"
    assert (await run_one(definition, tools, inputs={"topic": "oil"})).exit_handle is None


@pytest.mark.parametrize(
    ("answer", "exit_handle"),
    [
        ("PASS: well argued.", "pass"),
        ("  **PASS** fine", "pass"),
        ("FAIL: no figures.", "fail"),
        ("It should PASS.", "fail"),
        ("", "fail"),
    ],
)
async def test_a_gate_with_a_soul_goes_by_how_its_answer_begins(answer: str, exit_handle: str) -> None:
    definition = define("a", gate("judge", "a", soul_ref="analyst"))
    provider = ScriptedProvider(answer)
    record = NodeRecord(node_id="a", output="the draft")
    result = await run_one(definition, tools_for(definition, provider), record)
    assert (result.exit_handle, result.output) == (exit_handle, answer)
    assert provider.asked[0].prompt.endswith("Output:\nthe draft")


async def test_the_demo_judge_gives_a_verdict() -> None:
    definition = define("a", gate("judge", "blocks.a.output", soul_ref="analyst"))
    tools = tools_for(definition, make_provider("demo"))
    result = await run_one(definition, tools, NodeRecord(node_id="a", output="TODO"))
    assert result.exit_handle == "fail"
    assert result.output.startswith("FAIL")


async def test_a_gate_may_check_one_field() -> None:
    definition = define("a", gate("judge", "a", soul_ref="analyst", extract_field="draft.text"))
    provider = ScriptedProvider("PASS")
    record = NodeRecord(node_id="a", output='{"draft": {"text": "only this"}, "notes": "secret"}')
    await run_one(definition, tools_for(definition, provider), record)
    assert provider.asked[0].prompt.endswith("Output:\nonly this")
    with pytest.raises(BlockFailure, match="no output to check"):
        await run_one(definition, tools_for(definition, provider), NodeRecord(node_id="a", output="text"))


@pytest.mark.parametrize(
    ("passed", "score", "threshold", "exit_handle"),
    [
        (True, 1.0, None, "pass"),
        (False, 0.9, None, "fail"),
        (False, 0.9, 0.8, "pass"),
        (True, 0.7, 0.8, "fail"),
        (False, None, None, "fail"),  # the evaluator broke
        (False, None, 0.0, "fail"),
        (None, None, None, "fail"),  # nothing was evaluated
    ],
)
async def test_a_gate_without_a_soul_goes_by_the_assertions(
    passed: bool | None, score: float | None, threshold: float | None, exit_handle: str
) -> None:
    definition = define("a", gate("judge", "a", threshold=threshold))
    record = NodeRecord(node_id="a", output="x", eval_passed=passed, eval_score=score)
    result = await run_one(definition, tools_for(definition), record)
    assert result.exit_handle == exit_handle
    assert result.output.startswith(exit_handle.upper())
    assert "'a'" in result.output


async def test_dispatch_asks_every_branch_and_lists_the_answers() -> None:
    definition = define("a", dispatch("team", "law", "tax"))
    provider = ScriptedProvider(lambda request: f"re: {request.prompt}")
    plan, results = await run_to_end(definition, tools_for(definition, provider, sandbox=Echo()))
    assert {request.prompt for request in provider.asked} == {"Do law", "Do tax"}
    assert plan.context.outputs() == {
        "team": '[{"exit_id": "law", "output": "re: Do law"}, {"exit_id": "tax", "output": "re: Do tax"}]'
    }
    join = results["team"]
    assert isinstance(join, BlockResult) and join.cost_usd == 0


async def test_a_failed_branch_fails_the_dispatch_with_its_reason() -> None:
    definition = define(dispatch("team", "law", "tax"))
    provider = ScriptedProvider()
    provider.error = ProviderError("Refused.", kind="refused")
    plan, _ = await run_to_end(definition, tools_for(definition, provider))
    assert plan.failure is not None
    assert plan.failure.message == (
        "Block 'team' failed: 2 branches failed: 'team.law': Refused.; 'team.tax': Refused."
    )


class Echo:
    """A sandbox that runs nothing, for tests about other blocks."""

    def run(self, code: str, data: dict[str, Any], **keys: Any) -> Any:
        from workflows_app.engine.sandbox.results import CodeResult

        return CodeResult("ok", output="echo")


def test_a_second_block_of_the_same_type_is_refused() -> None:
    with pytest.raises(TypeError, match="Block type 'llm' is already LlmBlock"):

        class Another(Block):
            type = "llm"

            async def run(self, timeout_seconds: float) -> BlockResult:
                raise NotImplementedError
