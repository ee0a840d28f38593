"""Whatever the graph, the order of completion and the moment of a crash: every node runs exactly once."""

from __future__ import annotations

import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workflows.engine.plans import code, define, dispatch, done, drive, failed, loop
from workflows_app.engine.definition import BaseBlockDef, Edge, WorkflowDefinition
from workflows_app.engine.records import NodeRecord, Step
from workflows_app.engine.schedule import Plan

EXITS = ("x", "y", None)


def random_definition(rng: Random) -> WorkflowDefinition:
    """A graph of plain blocks, dispatches and loops, with routes by exit and by error."""
    count = rng.randint(1, 9)
    blocks: list[BaseBlockDef] = []
    for index in range(count):
        name = f"b{index}"
        match rng.randrange(5):
            case 0:
                inner = [f"{name}_i{number}" for number in range(rng.randint(1, 3))]
                keys = {"break_on_exit": rng.choice(["x", None]), "retry_on_exit": rng.choice(["y", None])}
                blocks.append(loop(name, *inner, max_rounds=rng.randint(1, 3), **keys))
                nested = rng.random() < 0.3
                if nested:
                    blocks.append(loop(inner[0], f"{name}_deep", max_rounds=rng.randint(1, 2)))
                    blocks.append(code(f"{name}_deep"))
                blocks += [code(one) for one in inner[nested:]]
            case 1:
                blocks.append(dispatch(name, *[f"e{number}" for number in range(rng.randint(1, 3))]))
            case _:
                blocks.append(code(name))
    return define(*blocks, "rescue", edges=random_edges(rng, count))


def random_edges(rng: Random, count: int) -> list[str]:
    edges = []
    for source in range(count):
        # Every block has a way out when it fails, so that the set of nodes does not depend on the order.
        edges.append(f"b{source} ! rescue")
        targets = [target for target in range(source + 1, count) if rng.random() < 0.4]
        routed = rng.random() < 0.4
        for target in targets:
            edges.append(
                f"b{source} > b{target}" + (f" : {rng.choice(['x', 'y', 'default'])}" if routed else "")
            )
        if routed and targets:
            edges.append(f"b{source} > b{targets[0]} : default")
    return edges


def decide(seed: int, step: Step) -> NodeRecord:
    """What becomes of a node: always the same for the same node and iteration."""
    rng = Random(f"{seed}:{step.node_id}:{step.iteration}")
    if rng.random() < 0.15 and step.node_id != "rescue":
        return failed(step)
    return done(step, exit_handle=rng.choice(EXITS))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), order=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_any_order_and_any_crash_runs_the_same_nodes_exactly_once(seed: int, order: int, other: int) -> None:
    definition = random_definition(Random(seed))
    plain = Plan(definition)
    expected = drive(plain, lambda step: decide(seed, step), Random(order))
    assert len(set(expected)) == len(expected)

    rng = Random(other)
    records: list[NodeRecord] = []
    ran: list[str] = []
    plan = Plan(definition)
    while not plan.is_finished:
        if rng.random() < 0.3:  # the process dies; another takes over from the rows, in any order
            rng.shuffle(records)
            plan = Plan(definition, records)
        step = rng.choice(plan.ready())
        ran.append(f"{step.node_id}#{step.iteration}")
        records.append(decide(seed, step))
        plan.record(records[-1])
        assert len(ran) <= len(expected), "the plan does not end"
    assert sorted(ran) == sorted(expected)
    assert sorted(plan.skipped()) == sorted(plain.skipped())
    assert plan.failure == plain.failure is None
    blocks_run = {name.partition("#")[0].partition(".")[0] for name in ran}
    assert blocks_run.isdisjoint(plan.skipped())
    assert blocks_run | set(plan.skipped()) == set(definition.blocks)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), order=st.integers(0, 10**6))
def test_a_failure_without_a_route_always_ends_the_run(seed: int, order: int) -> None:
    made = random_definition(Random(seed))
    edges = tuple(edge for edge in made.edges if not edge.is_error)
    definition = WorkflowDefinition(name="Test", slug=None, blocks=made.blocks, edges=edges)
    plan = Plan(definition)
    outcomes: dict[str, NodeRecord] = {}

    def outcome(step: Step) -> NodeRecord:
        outcomes[step.node_id] = decide(seed, step)
        return outcomes[step.node_id]

    drive(plan, outcome, Random(order))
    top = {key: record for key, record in outcomes.items() if key in plan.graph.top}
    failed_nodes = [key for key, record in top.items() if record.status == "failed"]
    assert (plan.failure is not None) == bool(failed_nodes)
    if plan.failure:
        assert plan.failure.node_id == failed_nodes[0]


def expected_blocks(definition: WorkflowDefinition, seed: int) -> set[str]:
    """The blocks that run, decided block by block from the rules and not from a plan; for graphs without loops."""
    routed = {(edge.source, edge.target) for edge in definition.edges if edge.exit}
    edges = [e for e in definition.edges if e.exit or e.is_error or (e.source, e.target) not in routed]
    above: dict[str, set[str]] = {}
    left: dict[str, NodeRecord] = {}
    for name in definition.blocks:  # each comes after all that lead to it
        incoming = [edge for edge in edges if edge.target == name]
        above[name] = {edge.source for edge in incoming}.union(*(above[edge.source] for edge in incoming))
        routes = [edge for edge in incoming if edge.exit or edge.is_error]
        plain = [edge for edge in incoming if edge not in routes]
        deciders = {edge.source for edge in routes} - {edge.source for edge in plain}
        weak = [edge for edge in plain if any(edge.source in above[one] for one in deciders)]
        taken = [edge for edge in incoming if is_taken(edge, left.get(edge.source), edges)]
        refused = [e for e in routes if e not in taken and (e.is_error or e.source in left)]
        if not incoming or set(taken) - set(weak) or (taken and not refused):
            left[name] = decide(seed, Step(node_id=name, block_id=name, kind="code"))
    return set(left)


def is_taken(edge: Edge, record: NodeRecord | None, edges: list[Edge]) -> bool:
    if record is None or edge.is_error != (record.status == "failed"):
        return False
    exits = {one.exit for one in edges if one.source == edge.source and one.exit}
    return edge.exit in (None, record.exit_handle if record.exit_handle in exits else "default")


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), order=st.integers(0, 10**6))
def test_the_plan_runs_what_the_rules_say(seed: int, order: int) -> None:
    rng = Random(seed)
    count = rng.randint(1, 10)
    definition = define(*[f"b{index}" for index in range(count)], "rescue", edges=random_edges(rng, count))
    ran = drive(Plan(definition), lambda step: decide(seed, step), Random(order))
    assert {name.partition("#")[0] for name in ran} == expected_blocks(definition, seed)


def test_recording_a_step_costs_the_same_however_long_the_chain() -> None:
    def calls(count: int) -> float:
        plan = Plan(define(*[code(f"b{index}") for index in range(count)]))
        seen = 0

        def count_calls(frame: object, event: str, arg: object) -> None:
            nonlocal seen
            seen += event == "call"

        sys.setprofile(count_calls)
        try:
            while not plan.is_finished:
                step = plan.ready()[0]
                plan.context.at(step)
                plan.record(done(step))
        finally:
            sys.setprofile(None)
        return seen / count

    assert calls(800) == pytest.approx(calls(50), rel=0.1)
