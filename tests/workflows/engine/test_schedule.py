"""Which blocks run, in what order, and which never do."""

from __future__ import annotations

import pytest

from tests.workflows.engine.plans import code, define, dispatch, done, drive, failed, gate, names, outcomes
from workflows_app.engine.definition import ExitCase
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.schedule import Plan


def test_blocks_without_edges_run_in_the_order_written() -> None:
    plan = Plan(define("c", "a", "b"))
    assert names(plan.ready()) == ["c"]
    assert drive(plan) == ["c#1", "a#1", "b#1"]
    assert plan.failure is None


def test_an_empty_definition_is_finished_at_once() -> None:
    assert Plan(define()).is_finished


def test_independent_blocks_are_ready_at_the_same_time() -> None:
    plan = Plan(define("a", "b", "join", edges=["a > join", "b > join"]))
    assert names(plan.ready()) == ["a", "b"]
    plan.record(done(plan.ready()[0]))
    assert names(plan.ready()) == ["b"]
    plan.record(done(plan.ready()[0]))
    assert names(plan.ready()) == ["join"]


def test_a_block_under_way_stays_ready_until_it_is_recorded() -> None:
    plan = Plan(define("a", "b", edges=["a > b"]))
    assert plan.ready() == plan.ready()
    assert not plan.is_finished


def test_only_what_the_entry_reaches_runs() -> None:
    plan = Plan(define("a", "b", "c", "d", edges=["a > b", "c > b", "c > d"], entry="a"))
    assert drive(plan) == ["a#1", "b#1"]
    assert plan.skipped() == []


@pytest.mark.parametrize(
    ("exit_handle", "ran", "skipped"),
    [
        ("good", ["a#1", "b#1", "end#1"], ["c"]),
        ("bad", ["a#1", "c#1", "end#1"], ["b"]),
        ("other", ["a#1", "c#1", "end#1"], ["b"]),  # the default
        ("", ["a#1", "c#1", "end#1"], ["b"]),  # no exit at all takes it too
    ],
)
def test_the_exit_chooses_the_way(exit_handle: str, ran: list[str], skipped: list[str]) -> None:
    edges = ["a > b : good", "a > c : bad", "a > c : default", "b > end", "c > end"]
    plan = Plan(define("a", "b", "c", "end", edges=edges))
    assert drive(plan, outcomes(a=exit_handle)) == ran
    assert plan.skipped() == skipped


def test_an_exit_that_leads_nowhere_fails_the_run_and_says_which() -> None:
    plan = Plan(define("a", "b", "c", edges=["a > b : good", "a > c : bad"]))
    drive(plan, outcomes(a="odd"))
    assert plan.failure is not None
    assert plan.failure.to_dict() == {
        "type": "unmatched_exit",
        "message": "Block 'a' took exit 'odd'; its transitions know bad, good and no default.",
        "node_id": "a",
        "iteration": 1,
    }
    assert plan.ready() == []


def test_a_join_is_skipped_when_everything_before_it_was() -> None:
    edges = ["a > b : x", "a > c : x", "a > d : y", "b > join", "c > join", "join > last"]
    plan = Plan(define("a", "b", "c", "d", "join", "last", edges=edges))
    assert drive(plan, outcomes(a="y")) == ["a#1", "d#1"]
    assert sorted(plan.skipped()) == ["b", "c", "join", "last"]


def test_a_skipped_block_is_listed_until_it_is_recorded() -> None:
    plan = Plan(define("a", "b", "c", edges=["a > b : x", "a > c : y"]))
    plan.record(done(plan.ready()[0], exit_handle="x"))
    assert plan.skipped() == ["c"]
    plan.record(NodeRecord(node_id="c", status="skipped"))
    assert plan.skipped() == []


@pytest.mark.parametrize(("verdict", "ran"), [("pass", ["publish#1"]), ("fail", ["rework#1"])])
def test_a_gate_decides_even_for_a_block_that_also_depends_on_what_was_judged(
    verdict: str, ran: list[str]
) -> None:
    edges = [
        *("draft > judge", "judge > publish : pass", "judge > rework : fail"),
        *("draft > publish", "judge > publish", "draft > rework"),  # what `depends` adds
    ]
    plan = Plan(define("draft", gate("judge", "draft"), "publish", "rework", edges=edges))
    assert drive(plan, outcomes(judge=verdict)) == ["draft#1", "judge#1", *ran]


def test_a_gate_that_was_not_needed_stops_nothing() -> None:
    edges = ["draft > judge : check", "draft > : fine", "judge > publish : pass", "draft > publish"]
    edges.append("judge > rework : fail")
    definition = define("draft", gate("judge", "draft"), "publish", "rework", edges=edges)
    assert drive(Plan(definition), outcomes(draft="fine")) == ["draft#1", "publish#1"]
    assert drive(Plan(definition), outcomes(draft="check", judge="fail")) == [
        "draft#1",
        "judge#1",
        "rework#1",
    ]


@pytest.mark.parametrize(
    ("outcome", "ran"), [("", ["fetch#1", "a#1"]), ("!", ["fetch#1", "a#1", "rescue#1"])]
)
def test_a_rescuer_that_also_reads_something_runs_only_on_failure(outcome: str, ran: list[str]) -> None:
    plan = Plan(define("fetch", "a", "rescue", edges=["fetch > a", "a ! rescue", "fetch > rescue"]))
    assert drive(plan, outcomes(a=outcome)) == ran


@pytest.mark.parametrize(
    ("given", "ran"),
    [
        ({"a": "go"}, ["a#1", "b#1", "report#1"]),
        ({"a": "go", "b": "!"}, ["a#1", "b#1", "report#1"]),
        ({"a": "stop"}, ["a#1", "report#1"]),  # b was skipped, a was not
    ],
)
def test_a_join_that_goes_on_after_an_error_is_still_a_join(given: dict[str, str], ran: list[str]) -> None:
    edges = ["a > b : go", "a > : stop", "a > report", "b > report", "b ! report"]
    assert drive(Plan(define("a", "b", "report", edges=edges)), outcomes(**given)) == ran


def test_a_detour_after_a_failed_gate_still_leads_to_the_end() -> None:
    edges = ["draft > judge", "judge > end : pass", "judge > fix : fail", "fix > end"]
    definition = define("draft", gate("judge", "draft"), "fix", "end", edges=edges)
    assert drive(Plan(definition), outcomes(judge="pass")) == ["draft#1", "judge#1", "end#1"]
    assert drive(Plan(definition), outcomes(judge="fail")) == ["draft#1", "judge#1", "fix#1", "end#1"]


def test_a_failed_block_fails_the_run() -> None:
    plan = Plan(define("a", "b", "c", edges=["a > b", "a > c"]))
    plan.record(done(plan.ready()[0]))
    plan.record(failed(plan.ready()[0], "no such file"))
    assert plan.is_finished
    assert plan.failure is not None
    assert (plan.failure.node_id, plan.failure.kind, plan.failure.message) == (
        "b",
        "error",
        "Block 'b' failed: no such file",
    )


@pytest.mark.parametrize(
    ("outcome", "ran", "skipped"),
    [("!", ["a#1", "rescue#1", "end#1"], ["b"]), ("", ["a#1", "b#1", "end#1"], ["rescue"])],
)
def test_an_error_route_takes_over_when_the_block_failed(
    outcome: str, ran: list[str], skipped: list[str]
) -> None:
    plan = Plan(define("a", "b", "rescue", "end", edges=["a > b", "a ! rescue", "b > end", "rescue > end"]))
    assert drive(plan, outcomes(a=outcome)) == ran
    assert plan.skipped() == skipped
    assert plan.failure is None


def test_the_error_route_waits_for_the_last_attempt() -> None:
    plan = Plan(define("a", "rescue", edges=["a ! rescue"]))
    plan.record(failed(plan.ready()[0], will_retry=True))
    assert [(step.node_id, step.attempt) for step in plan.ready()] == [("a", 2)]
    plan.record(failed(plan.ready()[0]))
    assert names(plan.ready()) == ["rescue"]


def test_an_interrupted_attempt_is_made_again() -> None:
    records = [NodeRecord(node_id="a", attempt=1, status="cancelled")]
    plan = Plan(define("a", "b"), records)
    assert [(step.node_id, step.attempt) for step in plan.ready()] == [("a", 2)]


def test_only_the_last_attempt_counts_whatever_the_order_of_the_rows() -> None:
    records = [
        NodeRecord(node_id="a", attempt=2, status="completed"),
        NodeRecord(node_id="a", attempt=1, status="failed", will_retry=True),
    ]
    assert names(Plan(define("a", "b"), records).ready()) == ["b"]


def test_a_second_record_of_a_finished_node_changes_nothing() -> None:
    plan = Plan(define("a", "b"))
    step = plan.ready()[0]
    plan.record(done(step))
    plan.record(failed(step))
    assert plan.failure is None
    assert names(plan.ready()) == ["b"]


def test_dispatch_runs_its_branches_together_and_then_joins() -> None:
    plan = Plan(define("a", dispatch("ask", "law", "tax"), "end", edges=["a > ask", "ask > end"]))
    plan.record(done(plan.ready()[0]))
    first, second = plan.ready()
    assert [(s.node_id, s.block_id, s.branch) for s in (first, second)] == [
        ("ask.law", "ask", "law"),
        ("ask.tax", "ask", "tax"),
    ]
    plan.record(done(second, "tax is due"))
    assert names(plan.ready()) == ["ask.law"]
    plan.record(done(first, "all legal"))
    (join,) = plan.ready()
    assert (join.node_id, join.branch) == ("ask", None)
    assert [part.output for part in join.parts] == ["all legal", "tax is due"]
    plan.record(done(join))
    assert names(plan.ready()) == ["end"]


def test_a_failed_branch_lets_the_others_finish_and_fails_the_join() -> None:
    plan = Plan(define(dispatch("ask", "law", "tax"), "rescue", edges=["ask ! rescue"]))
    assert drive(plan, outcomes(ask__law="!")) == ["ask.law#1", "ask.tax#1", "ask#1", "rescue#1"]


def test_a_chain_of_two_thousand_blocks_is_replayed_without_recursion() -> None:
    blocks = [code(f"b{index}") for index in range(2000)]
    records = [NodeRecord(node_id=block.id) for block in blocks[:-1]]
    assert names(Plan(define(*blocks), records).ready()) == ["b1999"]


def test_a_long_chain_of_skipped_blocks_needs_no_recursion() -> None:
    blocks = ["start", "other", *(f"b{index}" for index in range(2000))]
    edges = ["start > other : x", "start > b0 : y", *(f"b{i} > b{i + 1}" for i in range(1999))]
    plan = Plan(define(*blocks, edges=edges))
    drive(plan, outcomes(start="x"))
    assert len(plan.skipped()) == 2000


@pytest.mark.parametrize("exit_handle", ["stop", "done"])
def test_an_exit_without_a_target_ends_its_branch(exit_handle: str) -> None:
    keys = {"routes": (ExitCase(exit="done"),)}
    plan = Plan(define(code("a", **keys), "b", "c", edges=["a > b : go", "a > : stop", "a > c"]))
    assert drive(plan, outcomes(a=exit_handle)) == ["a#1", "c#1"]
    assert plan.skipped() == ["b"]
    assert plan.failure is None
