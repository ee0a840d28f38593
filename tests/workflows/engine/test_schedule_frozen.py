"""Blocks whose outputs are given beforehand, as in eval cases: they are not run, and all else is."""

from __future__ import annotations

from tests.workflows.engine.plans import code, define, dispatch, drive, gate, loop
from workflows_app.engine.definition import Condition, ExitCase
from workflows_app.engine.schedule import Plan


def test_a_frozen_block_is_not_run_and_its_output_is_read() -> None:
    plan = Plan(define("a", "b", "c"), frozen={"a": {"n": 1}, "b": "text"})
    (step,) = plan.ready()
    assert plan.context.at(step).render("{{ a.n }} {{ b }}") == "1 text"
    assert drive(plan) == ["c#1"]
    assert plan.context.outputs() == {"c": "c 1"}


def test_a_plan_with_everything_frozen_is_finished_at_once() -> None:
    plan = Plan(define("a", "b"), frozen={"a": "x", "b": "y"})
    assert plan.is_finished
    assert plan.context.outputs() == {"b": "y"}


def test_a_frozen_block_still_chooses_its_exit() -> None:
    case = ExitCase(exit="big", when=Condition(eval_key="blocks.a.json.n", operator="gt", value=5))
    rest = ExitCase(exit="small", default=True)
    definition = define(
        code("a", exit_conditions=(case, rest)), "b", "c", edges=["a > b : big", "a > c : small"]
    )
    assert drive(Plan(definition, frozen={"a": {"n": 9}})) == ["b#1"]
    assert drive(Plan(definition, frozen={"a": {"n": 1}})) == ["c#1"]


def test_a_frozen_gate_goes_by_how_its_text_begins() -> None:
    definition = define(
        "a", gate("judge", "a"), "b", "c", edges=["a > judge", "judge > b : pass", "judge > c : fail"]
    )
    assert drive(Plan(definition, frozen={"judge": "PASS: good"})) == ["a#1", "b#1"]
    assert drive(Plan(definition, frozen={"judge": "FAIL"})) == ["a#1", "c#1"]
    assert drive(Plan(definition, frozen={"judge": {"exit_handle": "pass"}})) == ["a#1", "b#1"]


def test_a_frozen_loop_or_dispatch_runs_nothing_inside() -> None:
    plan = Plan(define(loop("l", "w"), "w", dispatch("d", "x"), "end"), frozen={"l": "text", "d": "[]"})
    assert drive(plan) == ["end#1"]
    assert plan.skipped() == ["w"]


def test_a_frozen_inner_block_says_the_same_in_every_round() -> None:
    plan = Plan(define(loop("l", "w", "check", max_rounds=2), "w", "check"), frozen={"w": "draft"})
    assert drive(plan) == ["check#1", "check#2", "l#1"]
