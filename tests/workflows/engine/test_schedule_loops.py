"""Rounds of loops: how they go on, how they end, and what is left of them."""

from __future__ import annotations

from tests.workflows.engine.plans import define, dispatch, done, drive, failed, gate, loop, outcomes
from workflows_app.engine.definition import Condition
from workflows_app.engine.records import NodeRecord, Step
from workflows_app.engine.schedule import Plan


def test_a_loop_runs_its_inner_blocks_in_order_for_every_round() -> None:
    plan = Plan(define(loop("refine", "write", "check", max_rounds=2), "write", "check", "end"))
    ran = drive(plan)
    assert ran == ["write#1", "check#1", "write#2", "check#2", "refine#1", "end#1"]


def test_steps_know_their_round_and_the_loop_collects_the_last_output() -> None:
    plan = Plan(define(loop("refine", "write", max_rounds=2), "write"))
    (step,) = plan.ready()
    assert (step.round, step.iteration) == (1, 1)
    plan.record(done(step))
    (step,) = plan.ready()
    assert (step.round, step.iteration) == (2, 2)
    plan.record(done(step, "final text"))
    (step,) = plan.ready()
    assert (step.node_id, step.kind, step.round) == ("refine", "loop", None)
    assert [part.output for part in step.parts] == ["final text"]


def test_a_break_condition_is_asked_after_each_round() -> None:
    condition = Condition(eval_key="blocks.check.output", operator="contains", value="check 2")
    plan = Plan(define(loop("refine", "write", "check", break_condition=condition), "write", "check"))
    assert drive(plan) == ["write#1", "check#1", "write#2", "check#2", "refine#1"]


def test_a_break_condition_may_ask_for_the_round_and_the_inputs() -> None:
    condition = Condition(eval_key="round", operator="gte", value="3")
    plan = Plan(define(loop("refine", "write", break_condition=condition), "write"), inputs={"x": 1})
    assert drive(plan) == ["write#1", "write#2", "write#3", "refine#1"]


def test_break_on_exit_ends_the_loop_at_once() -> None:
    plan = Plan(
        define(
            loop("refine", "write", "judge", "polish", break_on_exit="pass"),
            "write",
            gate("judge", "write"),
            "polish",
        )
    )
    ran = drive(plan, outcomes(judge="fail,pass"))
    assert ran == ["write#1", "judge#1", "polish#1", "write#2", "judge#2", "refine#1"]


def test_retry_on_exit_goes_to_the_next_round_at_once() -> None:
    plan = Plan(
        define(
            loop("refine", "write", "judge", "polish", retry_on_exit="fail", max_rounds=2),
            "write",
            gate("judge", "write"),
            "polish",
        )
    )
    ran = drive(plan, outcomes(judge="fail,pass"))
    assert ran == ["write#1", "judge#1", "write#2", "judge#2", "polish#1", "refine#1"]


def test_retry_on_exit_in_the_last_round_ends_the_loop() -> None:
    plan = Plan(define(loop("refine", "write", retry_on_exit="again", max_rounds=3), "write"))
    assert drive(plan, outcomes(write="again")) == ["write#1", "write#2", "write#3", "refine#1"]


def test_a_failing_inner_block_fails_the_loop_and_the_run() -> None:
    plan = Plan(define(loop("refine", "write", "check"), "write", "check", "end"))
    assert drive(plan, outcomes(check=",!")) == ["write#1", "check#1", "write#2", "check#2", "refine#1"]
    assert plan.failure is not None
    assert plan.failure.node_id == "refine"


def test_a_failed_loop_takes_its_error_route() -> None:
    plan = Plan(
        define(loop("refine", "write"), "write", "rescue", "end", edges=["refine ! rescue", "refine > end"])
    )
    assert drive(plan, outcomes(write="!")) == ["write#1", "refine#1", "rescue#1"]
    assert plan.failure is None
    assert plan.skipped() == ["end"]


def test_an_inner_error_route_goes_on_inside_the_loop() -> None:
    plan = Plan(
        define(
            loop("refine", "write", "check", "rescue", max_rounds=2),
            "write",
            "check",
            "rescue",
            edges=["write ! rescue"],
        )
    )
    ran = drive(plan, outcomes(write=",!"))
    assert ran == ["write#1", "check#1", "write#2", "rescue#1", "refine#1"]
    assert plan.failure is None


def test_an_inner_error_route_may_lead_out_of_the_loop() -> None:
    edges = ["write ! rescue", "check ! other", "refine > end"]
    plan = Plan(
        define(loop("refine", "write", "check"), "write", "check", "rescue", "other", "end", edges=edges)
    )
    assert drive(plan, outcomes(write="!")) == ["write#1", "refine#1", "rescue#1"]
    assert sorted(plan.skipped()) == ["check", "end", "other"]


def test_an_inner_gate_may_lead_back_and_out() -> None:
    edges = ["judge > write : fail", "judge > publish : pass", "refine > log"]
    definition = define(
        loop("refine", "write", "judge", max_rounds=3),
        "write",
        gate("judge", "write"),
        "publish",
        "log",
        edges=edges,
    )
    plan = Plan(definition)
    ran = drive(plan, outcomes(judge="fail,pass"))
    assert ran == ["write#1", "judge#1", "write#2", "judge#2", "refine#1", "publish#1", "log#1"]
    plan = Plan(definition)
    assert drive(plan, outcomes(judge="fail"))[-2:] == ["refine#1", "log#1"]
    assert plan.skipped() == ["publish"]


def test_inner_branches_run_only_when_chosen() -> None:
    edges = ["judge > polish : pass", "judge > rewrite : fail"]
    inner = ("judge", "polish", "rewrite")
    plan = Plan(
        define(
            loop("refine", *inner, max_rounds=2), gate("judge", "polish"), "polish", "rewrite", edges=edges
        )
    )
    ran = drive(plan, outcomes(judge="fail,pass"))
    assert ran == ["judge#1", "rewrite#1", "judge#2", "polish#1", "refine#1"]


def test_nested_loops_count_each_blocks_executions_in_the_run() -> None:
    plan = Plan(
        define(
            loop("outer", "plan", "inner", max_rounds=2),
            loop("inner", "write", max_rounds=2),
            "plan",
            "write",
        )
    )
    rounds: list[tuple[str, int, int | None]] = []

    def outcome(step: Step) -> NodeRecord:
        rounds.append((step.node_id, step.iteration, step.round))
        return done(step)

    drive(plan, outcome)
    assert rounds == [
        *[("plan", 1, 1), ("write", 1, 1), ("write", 2, 2), ("inner", 1, 1)],
        *[("plan", 2, 2), ("write", 3, 1), ("write", 4, 2), ("inner", 2, 2)],
        ("outer", 1, None),
    ]


def test_a_route_out_of_two_loops_ends_both() -> None:
    edges = ["write > publish : done", "write > write : default"]
    plan = Plan(define(loop("outer", "inner"), loop("inner", "write"), "write", "publish", edges=edges))
    ran = drive(plan, outcomes(write="more,done"))
    assert ran == ["write#1", "write#2", "inner#1", "outer#1", "publish#1"]


def test_a_skipped_loop_skips_what_is_inside() -> None:
    edges = ["a > refine : x", "a > end : y"]
    plan = Plan(define("a", loop("refine", "write"), "write", "end", edges=edges))
    assert drive(plan, outcomes(a="y")) == ["a#1", "end#1"]
    assert plan.skipped() == ["refine", "write"]


def test_what_depends_on_an_inner_block_waits_for_its_loop() -> None:
    plan = Plan(
        define("a", loop("refine", "write", max_rounds=2), "write", "end", edges=["a > write", "write > end"])
    )
    assert drive(plan) == ["a#1", "write#1", "write#2", "refine#1", "end#1"]


def test_dispatch_inside_a_loop_numbers_its_branches_by_round() -> None:
    plan = Plan(define(loop("refine", "ask", max_rounds=2), dispatch("ask", "x", "y")))
    ran = drive(plan)
    assert ran == ["ask.x#1", "ask.y#1", "ask#1", "ask.x#2", "ask.y#2", "ask#2", "refine#1"]


def test_a_retried_inner_block_stays_in_its_round() -> None:
    plan = Plan(define(loop("refine", "write", max_rounds=1), "write"))
    plan.record(failed(plan.ready()[0], will_retry=True))
    (step,) = plan.ready()
    assert (step.iteration, step.attempt, step.round) == (1, 2, 1)


def test_a_break_condition_that_cannot_be_decided_fails_the_loop() -> None:
    condition = Condition(eval_key="blocks.write.output", operator="regex", value="(a+)+$")
    plan = Plan(define(loop("refine", "write", break_condition=condition), "write"))
    plan.record(done(plan.ready()[0], "a" * 5000 + "b"))
    (step,) = plan.ready()
    assert step.node_id == "refine"
    assert step.parts[0].status == "failed"
    assert "break condition after round 1" in step.parts[0].error["message"]  # type: ignore[index]


def test_a_loop_that_retries_on_an_exit_ends_after_a_round_without_it() -> None:
    plan = Plan(
        define(loop("refine", "write", "judge", retry_on_exit="fail"), "write", gate("judge", "write"))
    )
    assert drive(plan, outcomes(judge="fail,pass"))[-2:] == ["judge#2", "refine#1"]
