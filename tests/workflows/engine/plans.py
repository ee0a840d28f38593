"""Definitions and runs of them without a database, for tests of the engine's pure parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from workflows_app.engine.definition import (
    BaseBlockDef,
    CodeBlockDef,
    DispatchBlockDef,
    DispatchExit,
    Edge,
    GateBlockDef,
    LoopBlockDef,
    WorkflowDefinition,
)
from workflows_app.engine.records import NodeRecord, Step
from workflows_app.engine.schedule import Plan

Outcome = Callable[[Step], NodeRecord]


def code(block_id: str, **keys: Any) -> CodeBlockDef:
    return CodeBlockDef(id=block_id, code="def main(data):\n    return 'ok'\n", **keys)


def gate(block_id: str, eval_key: str, **keys: Any) -> GateBlockDef:
    return GateBlockDef(id=block_id, eval_key=eval_key, **keys)


def loop(block_id: str, *inner: str, **keys: Any) -> LoopBlockDef:
    return LoopBlockDef(id=block_id, inner_block_refs=inner, **keys)


def dispatch(block_id: str, *branches: str, **keys: Any) -> DispatchBlockDef:
    exits = tuple(DispatchExit(id=one, soul_ref="analyst", task=f"Do {one}") for one in branches)
    return DispatchBlockDef(id=block_id, branches=exits, **keys)


def define(*blocks: BaseBlockDef | str, edges: Iterable[str] = (), **keys: Any) -> WorkflowDefinition:
    """A definition; `a > b` is an edge, `a > b : exit` one for an exit, `a ! b` an error route."""
    made = [code(block) if isinstance(block, str) else block for block in blocks]
    return WorkflowDefinition(
        name="Test",
        slug="test",
        blocks={block.id: block for block in made},
        edges=tuple(edge(text) for text in edges),
        **keys,
    )


def edge(text: str) -> Edge:
    is_error = "!" in text
    source, _, rest = text.partition("!" if is_error else ">")
    target, _, exit_handle = rest.partition(":")
    return Edge(
        source=source.strip(), target=target.strip(), exit=exit_handle.strip() or None, is_error=is_error
    )


def done(step: Step, output: str = "", exit_handle: str | None = None) -> NodeRecord:
    """The step completed; a loop or dispatch collects as it would."""
    if step.parts and any(part.status == "failed" for part in step.parts):
        return failed(step, "inner failed")
    return NodeRecord(
        node_id=step.node_id,
        iteration=step.iteration,
        attempt=step.attempt,
        output=output or (step.parts[-1].output if step.parts else f"{step.node_id} {step.iteration}"),
        exit_handle=exit_handle,
    )


def failed(step: Step, message: str = "broke", *, will_retry: bool = False) -> NodeRecord:
    return NodeRecord(
        node_id=step.node_id,
        iteration=step.iteration,
        attempt=step.attempt,
        status="failed",
        error={"type": "error", "message": message},
        will_retry=will_retry,
    )


def outcomes(**given: str) -> Outcome:
    """Each node completes; `name="!"` fails, `name="x"` leaves by exit x, `name="x,y"` by x, then by y."""

    def outcome(step: Step) -> NodeRecord:
        said = given.get(step.node_id.replace(".", "__"), "").split(",")
        answer = said[min(step.iteration, len(said)) - 1]
        return failed(step) if answer == "!" else done(step, exit_handle=answer or None)

    return outcome


def drive(plan: Plan, outcome: Outcome = done, rng: Random | None = None) -> list[str]:
    """Run the plan to its end, one node after the other in any order; gives the nodes as `id#iteration`."""
    ran: list[str] = []
    while not plan.is_finished:
        ready = plan.ready()
        step = rng.choice(ready) if rng else ready[0]
        ran.append(f"{step.node_id}#{step.iteration}")
        plan.record(outcome(step))
        assert len(ran) < 5000, "the plan does not end"
    return ran


def names(steps: list[Step]) -> list[str]:
    return [step.node_id for step in steps]
