"""Caps on cost, tokens and time: a call starts only if what is spent and its known maximum fit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.workflows.engine.plans import code, define, loop
from tests.workflows.souls import ANALYST, ScriptedProvider, run_one, run_to_end, tools_for
from workflows_app.engine.definition import Limits, LlmBlockDef, WorkflowDefinition
from workflows_app.engine.limits import CallEstimate, Spend
from workflows_app.engine.results import BlockFailure, BlockResult

CALL = CallEstimate(model="demo-small", prompt_tokens=1000, max_tokens=1000)  # 0.0004 + 0.0016 dollars


def capped(**limits: Any) -> WorkflowDefinition:
    return define("a", "b", limits=Limits(**limits))


@pytest.mark.parametrize(
    ("spent", "fits"), [("0", True), ("0.008", True), ("0.0080001", False), ("0.02", False)]
)
def test_a_call_must_fit_with_its_known_maximum(spent: str, fits: bool) -> None:
    spend = Spend(capped(cost_cap_usd=0.01))
    spend.add("a", Decimal(spent), 0)
    if fits:
        assert spend.check_call("b", CALL) == []
    else:
        with pytest.raises(BlockFailure, match=r"Limit of the run: \$0.\d+ of the \$0.01 it may cost"):
            spend.check_call("b", CALL)


@pytest.mark.parametrize(("spent", "fits"), [(0, True), (1000, True), (1001, False)])
def test_tokens_must_fit_too(spent: int, fits: bool) -> None:
    spend = Spend(capped(token_cap=3000))
    spend.add("a", None, spent)
    if fits:
        assert spend.check_call("a", CALL) == []
    else:
        with pytest.raises(BlockFailure, match="1001 of the 3000 tokens"):
            spend.check_call("a", CALL)


def test_a_cap_that_warns_lets_the_call_go_and_says_so() -> None:
    spend = Spend(capped(token_cap=10, on_exceed="warn"))
    (warning,) = spend.check_call("a", CALL)
    assert "0 of the 10 tokens" in warning


@pytest.mark.parametrize("on_exceed", ["fail", "warn"])
def test_a_cost_cap_on_a_model_without_a_price_is_a_fault(on_exceed: str) -> None:
    spend = Spend(capped(cost_cap_usd=1, on_exceed=on_exceed))
    with pytest.raises(BlockFailure, match="the price of model 'house-model' is unknown") as caught:
        spend.check_call("a", replace(CALL, model="house-model"))
    assert caught.value.kind == "limit"
    prices = {"house-model": {"input_per_million": 1, "output_per_million": 1}}
    spend = Spend(capped(cost_cap_usd=1), overrides=prices)
    assert spend.check_call("a", replace(CALL, model="house-model")) == []


def test_a_token_cap_needs_no_price() -> None:
    assert Spend(capped(token_cap=5000)).check_call("a", replace(CALL, model="house-model")) == []


def test_time_is_counted_from_the_start_of_the_run() -> None:
    now = [100.0]
    spend = Spend(capped(max_duration_seconds=60), elapsed_seconds=50, clock=lambda: now[0])
    assert spend.check_start("a") == []
    assert spend.remaining_seconds("a") == (10, "the run")
    now[0] = 110.0
    with pytest.raises(BlockFailure, match="the 60 seconds it may take are over"):
        spend.check_start("a")


def test_a_blocks_own_cap_binds_that_block_only() -> None:
    spend = Spend(define(code("a", limits=Limits(token_cap=2500)), "b"))
    spend.add("a", None, 1000)
    with pytest.raises(BlockFailure, match="Limit of block 'a'"):
        spend.check_call("a", CALL)
    assert spend.check_call("b", CALL) == []


def test_a_loop_pays_for_what_is_inside_it() -> None:
    definition = define(
        loop("outer", "inner", limits=Limits(token_cap=2500)), loop("inner", "write"), "write", "free"
    )
    spend = Spend(definition)
    spend.add("write", None, 1000)
    with pytest.raises(BlockFailure, match="Limit of block 'outer'"):
        spend.check_call("write", CALL)
    assert spend.check_call("free", CALL) == []


def llm(block_id: str, **keys: Any) -> LlmBlockDef:
    return LlmBlockDef(id=block_id, soul_ref="analyst", prompt="x", **keys)


async def test_the_run_stops_before_the_call_that_would_not_fit() -> None:
    definition = define(llm("a"), llm("b"), llm("c"), limits=Limits(token_cap=440))
    provider = ScriptedProvider()  # each call may take 204 tokens and takes 120
    plan, _ = await run_to_end(definition, tools_for(definition, provider))
    assert len(provider.asked) == 2
    assert plan.failure is not None
    assert (plan.failure.node_id, plan.failure.kind) == ("c", "limit")
    assert "240 of the 440 tokens" in plan.failure.message


async def test_a_warning_is_kept_with_the_node() -> None:
    definition = define(llm("a"), limits=Limits(cost_cap_usd=0.0, on_exceed="warn"))
    result = await run_one(definition, tools_for(definition))
    assert isinstance(result, BlockResult)
    assert result.details["warnings"][0].startswith("Limit of the run: $0.000000 of the $0.0 it may cost")


async def test_a_server_that_reports_no_tokens_still_uses_up_the_cap() -> None:
    provider = ScriptedProvider("word " * 200, prompt_tokens=None, completion_tokens=None)
    definition = define(llm("a"), llm("b"), limits=Limits(cost_cap_usd=0.0006, token_cap=100_000))
    plan, results = await run_to_end(definition, tools_for(definition, provider))
    first = results["a"]
    assert isinstance(first, BlockResult) and first.cost_usd is None
    assert plan.failure is not None and plan.failure.node_id == "b"


async def test_a_call_is_cut_off_when_the_runs_time_is_over() -> None:
    provider = ScriptedProvider()
    provider.sleep_seconds = 30
    definition = define(llm("a"), limits=Limits(max_duration_seconds=0.1))
    with pytest.raises(BlockFailure, match="Limit of the run: the time it may take ran out") as caught:
        await run_one(definition, tools_for(definition, provider))
    assert (caught.value.kind, caught.value.is_retryable) == ("limit", False)


def test_the_soul_of_these_tests_has_a_known_maximum() -> None:
    assert ANALYST.max_tokens == 200
