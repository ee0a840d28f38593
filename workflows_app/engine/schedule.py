"""Decides which blocks may start next. Pure: everything follows from the definition and the finished nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from workflows_app.engine.definition import (
    DEFAULT_EXIT,
    DispatchBlockDef,
    GateBlockDef,
    LoopBlockDef,
    WorkflowDefinition,
)
from workflows_app.engine.graph import Graph, Link
from workflows_app.engine.records import Key, NodeRecord, Step
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.conditions import ConditionError, evaluate
from workflows_app.engine.values.context import RunContext
from workflows_app.engine.values.exits import choose_exit, verdict_exit
from workflows_app.engine.values.outputs import code_output

MOST_BLOCKS_AT_ONCE = 8  # of one run


@dataclass(frozen=True)
class RunFailure:
    """Why a run cannot go on: the node, and a sentence."""

    node_id: str
    iteration: int
    kind: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "message": self.message,
            "node_id": self.node_id,
            "iteration": self.iteration,
        }


@dataclass
class _Loop:
    """One execution of a loop: where it stands, and the edges by which it was left."""

    block: LoopBlockDef
    step: Step
    routed: frozenset[str]  # inner blocks that run only when a route leads to them
    round: int = 0
    last: NodeRecord | None = None
    left_by: list[Link] = field(default_factory=list)


class Plan:
    """Which nodes of a run may start; `record` what happened to them, in any order.

    A plan built from the records of a run is the plan that saw them happen, which is what makes a run resumable.
    """

    def __init__(
        self,
        definition: WorkflowDefinition,
        finished: Iterable[NodeRecord] = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
        frozen: Mapping[str, Any] | None = None,
        evaluate_frozen: Callable[[NodeRecord], NodeRecord] | None = None,
    ) -> None:
        """`frozen` gives the outputs of blocks that are not to be executed, as eval cases do.

        `evaluate_frozen` receives each such record and may add its assertions' results, which gates read.
        """
        self.definition = definition
        self.graph = Graph(definition)
        self.context = RunContext(definition, self.graph, inputs or {}, run or {})
        self.failure: RunFailure | None = None
        self._frozen = frozen or {}
        self._evaluate_frozen = evaluate_frozen
        self._ready: dict[Key, Step] = {}
        self._known: dict[Key, NodeRecord] = {}  # final, not yet asked for
        self._attempts: dict[Key, int] = {}
        self._done: set[Key] = set()
        self._executions: dict[str, int] = {}
        self._skipped: dict[str, None] = {}
        self._skips_recorded: set[str] = set()
        self._loops: dict[str, _Loop] = {}
        self._branches: dict[
            str, dict[str, NodeRecord | None]
        ] = {}  # of a dispatch block, None until it is done
        self._waiting = {block_id: len(self.graph.incoming[block_id]) for block_id in self.graph.top}
        self._wanted: set[str] = set()  # a link leads to them
        self._weakly_wanted: set[str] = set()  # a weak link leads to them
        self._refused: set[str] = set()  # a route to them was not taken
        self._work: deque[Callable[[], None]] = deque()
        for record in sorted(finished, key=lambda one: one.attempt):
            self._note(record)
        for block_id, count in self._waiting.items():
            if count == 0:
                self._start(block_id)
        self._drain()

    # What the executor asks

    def ready(self) -> list[Step]:
        """Every node that may run now, those under way included until they are recorded; none after a failure."""
        return [] if self.failure else list(self._ready.values())

    def skipped(self) -> list[str]:
        """Nodes that will never run and are not recorded as skipped yet."""
        return list(self._skipped)

    @property
    def is_finished(self) -> bool:
        """Whether no node is left to run: all done, or the run has failed."""
        return self.failure is not None or not self._ready

    def record(self, record: NodeRecord) -> None:
        """Take in what became of a node; a second record of a finished one changes nothing."""
        self._note(record)
        if (step := self._ready.get(record.key)) is not None:
            self._offer(step)
        self._drain()

    # Records

    def _note(self, record: NodeRecord) -> None:
        """Keep a record until the plan comes to its node."""
        if record.status == "skipped":
            self._skips_recorded.add(record.node_id)
            self._skipped.pop(record.node_id, None)
        elif record.key not in self._done and record.attempt >= self._attempts.get(record.key, 0):
            self._attempts[record.key] = record.attempt
            if record.is_final:
                self._known[record.key] = record
            else:
                self._known.pop(record.key, None)

    def _offer(self, step: Step) -> None:
        """Take a recorded node as finished, else let it run."""
        record = self._known.pop(step.key, None)
        if record is None:
            self._ready[step.key] = replace(step, attempt=self._attempts.get(step.key, 0) + 1)
            return
        self._ready.pop(step.key, None)
        self._done.add(step.key)
        self._work.append(lambda: self._finish(step, record))

    def _drain(self) -> None:
        # A queue and not recursion: a chain of a thousand finished blocks is replayed in one go.
        while self._work:
            self._work.popleft()()

    # Blocks

    def _start(self, block_id: str, loop: _Loop | None = None) -> None:
        block = self.definition.blocks[block_id]
        iteration = self._executions[block_id] = self._executions.get(block_id, 0) + 1
        step = Step(
            node_id=block_id,
            block_id=block_id,
            iteration=iteration,
            kind=block.type,
            round=loop.round if loop else None,
        )
        if block_id in self._frozen:
            self._done.add(step.key)
            self._work.append(lambda: self._finish(step, self._frozen_record(step)))
        elif isinstance(block, LoopBlockDef):
            self._loops[block_id] = opened = _Loop(block, step, self._routed(block))
            self.context.enter_loop(block_id)
            self._next_round(opened)
        elif isinstance(block, DispatchBlockDef):
            self._branches[block_id] = {branch.id: None for branch in block.branches}
            for branch in block.branches:
                self._offer(replace(step, node_id=f"{block_id}.{branch.id}", branch=branch.id))
        else:
            self._offer(step)

    def _frozen_record(self, step: Step) -> NodeRecord:
        """The record of a block whose output is frozen."""
        block = self.definition.blocks[step.block_id]
        record = NodeRecord(node_id=step.node_id, iteration=step.iteration)
        try:
            output, exit_handle = code_output(self._frozen[step.block_id])
            if isinstance(block, GateBlockDef):
                exit_handle = exit_handle or verdict_exit(output)
            exit_handle = choose_exit(block, output, exit_handle, self.context.at(step))
        except BlockFailure as failure:
            return replace(record, status="failed", error=dict(failure.to_dict()))
        record = replace(record, output=output, exit_handle=exit_handle)
        return self._evaluate_frozen(record) if self._evaluate_frozen else record

    def _finish(self, step: Step, record: NodeRecord) -> None:
        if step.branch is not None:
            # After the last branch the dispatch block itself may run.
            done = self._branches[step.block_id]
            done[step.branch] = record
            parts = tuple(part for part in done.values() if part is not None)
            if len(parts) == len(done):
                self._offer(replace(step, node_id=step.block_id, branch=None, parts=parts))
            return
        self.context.add(step.block_id, record)
        taken = self._choose(step, record)
        if taken is None:
            return
        loop_id = self.graph.loops.get(step.block_id)
        if loop_id is not None:
            self._advance(self._loops[loop_id], step.block_id, record, taken)
        elif record.status == "failed" and not taken:
            error = record.error or {}
            reason = error.get("message") or "no reason was recorded."
            self._fail(record, str(error.get("type", "error")), f"Block '{step.block_id}' failed: {reason}")
        else:
            if isinstance(self.definition.blocks[step.block_id], LoopBlockDef):
                inside = self.graph.inside(step.block_id, deep=True)
                self._list_skipped(one for one in inside if one not in self._executions)
            for link in self.graph.outgoing[step.block_id]:
                self._settle(link, is_taken=link in taken)

    def _choose(self, step: Step, record: NodeRecord) -> set[Link] | None:
        """The links taken from a finished block; None when its exit leads nowhere, which fails the run."""
        block_id = step.block_id
        loop = self._loops.get(block_id)
        left_by = loop.left_by if loop else []
        outgoing = self.graph.outgoing[block_id]
        own = [link for link in outgoing if not link.leaves_loop] + self.graph.leaving.get(block_id, [])
        if record.status == "failed":
            return {link for link in own + left_by if link.edge.is_error}
        exits = [link for link in own if link.edge.exit is not None and not link.edge.is_error]
        matched = [link for link in exits if link.edge.exit == record.exit_handle]
        ends = self.graph.ends[block_id]
        if not matched and record.exit_handle not in ends:
            matched = [link for link in exits if link.edge.exit == DEFAULT_EXIT]
        if matched or not (exits or ends) or record.exit_handle in ends or DEFAULT_EXIT in ends:
            plain = [link for link in outgoing if not link.is_route]
            return {*matched, *plain, *(link for link in left_by if not link.edge.is_error)}
        known = ", ".join(sorted({str(link.edge.exit) for link in exits} | ends))
        taken = "no exit" if record.exit_handle is None else f"exit '{record.exit_handle}'"
        message = f"Block '{block_id}' took {taken}; its transitions know {known} and no default."
        self._fail(record, "unmatched_exit", message)
        return None

    def _settle(self, link: Link, *, is_taken: bool, has_run: bool = True) -> None:
        """One of the things a block waits for is decided."""
        target = link.target
        if is_taken:
            (self._weakly_wanted if link.is_weak else self._wanted).add(target)
        elif link.edge.is_error or (link.is_route and has_run):
            self._refused.add(target)
        self._waiting[target] -= 1
        if self._waiting[target] == 0:
            starts = target in self._wanted or (target in self._weakly_wanted and target not in self._refused)
            self._work.append(partial(self._start if starts else self._skip, target))

    def _skip(self, block_id: str) -> None:
        self._list_skipped([block_id, *self.graph.inside(block_id, deep=True)])
        for link in self.graph.outgoing[block_id]:
            self._settle(link, is_taken=False, has_run=False)

    def _list_skipped(self, block_ids: Iterable[str]) -> None:
        self._skipped.update({one: None for one in block_ids if one not in self._skips_recorded})

    def _fail(self, record: NodeRecord, kind: str, message: str) -> None:
        if self.failure is None:
            self.failure = RunFailure(record.node_id, record.iteration, kind, message)

    # Loops

    def _routed(self, block: LoopBlockDef) -> frozenset[str]:
        place = {ref: index for index, ref in enumerate(block.inner_block_refs)}
        return frozenset(
            ref
            for ref, links in ((ref, self.graph.incoming[ref]) for ref in place)
            if links and all(link.is_route and place[link.source] < place[ref] for link in links)
        )

    def _next_round(self, loop: _Loop) -> None:
        if loop.round == loop.block.max_rounds:
            self._end(loop)
            return
        loop.round += 1
        self.context.enter_round(loop.block.id)
        self._go_on(loop, 0)

    def _go_on(self, loop: _Loop, position: int) -> None:
        """Start the next inner block in order, or end the round."""
        refs = loop.block.inner_block_refs
        while position < len(refs) and refs[position] in loop.routed:
            position += 1
        if position < len(refs):
            self._start(refs[position], loop)
        elif self._has_broken(loop) or loop.block.retry_on_exit is not None:
            self._end(loop)  # a loop that goes round on an exit, and none of this round's blocks took it
        else:
            self._next_round(loop)

    def _has_broken(self, loop: _Loop) -> bool:
        condition = loop.block.break_condition
        if condition is None:
            return False
        inside = replace(loop.step, round=loop.round)
        try:
            return evaluate(condition, self.context.at(inside).lookup)
        except ConditionError as error:
            message = f"Cannot decide the break condition after round {loop.round}: {error}."
            loop.last = NodeRecord(
                node_id=loop.block.id, status="failed", error={"type": "condition", "message": message}
            )
            return True

    def _advance(self, loop: _Loop, block_id: str, record: NodeRecord, taken: set[Link]) -> None:
        """An inner block is done: on to the next, the next round, or out of the loop."""
        loop.last = record
        routes = [link for link in taken if link.is_route]
        beyond = [link for link in routes if link.source != block_id]
        if beyond or (record.status == "failed" and not routes):
            loop.left_by = beyond
            self._end(loop)
            return
        place = loop.block.inner_block_refs.index
        here = place(block_id)
        if routes:
            forward = [place(link.target) for link in routes if place(link.target) > here]
            if forward:
                self._start(loop.block.inner_block_refs[min(forward)], loop)
            else:
                self._next_round(loop)
        elif record.exit_handle is not None and record.exit_handle == loop.block.break_on_exit:
            self._end(loop)
        elif record.exit_handle is not None and record.exit_handle == loop.block.retry_on_exit:
            self._next_round(loop)
        else:
            self._go_on(loop, here + 1)

    def _end(self, loop: _Loop) -> None:
        """The rounds are over: the loop's own node collects the last inner output, or fails with it."""
        self._offer(replace(loop.step, parts=(loop.last,) if loop.last else ()))
