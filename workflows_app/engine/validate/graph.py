"""How the blocks hang together: edges, loops, cycles, what is reached, and what each block can see."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, Final

from workflows_app.engine.definition import DEFAULT_EXIT, Edge
from workflows_app.engine.graph import BlockGraph
from workflows_app.engine.parse import KeyPath
from workflows_app.engine.schema.kinds import Checker
from workflows_app.engine.schema.shapes import placed
from workflows_app.engine.validate.blocks import Draft
from workflows_app.engine.values.paths import closest

MAX_LOOP_DEPTH: Final = 5
MAX_EDGES: Final = 6000


Written = tuple[Edge, KeyPath]
"""An edge and where it was written."""


class DraftGraph:
    """The graph of the blocks as far as they could be read; reports errors and goes on with the likeliest meaning."""

    def __init__(self, drafts: dict[str, Draft], workflow: dict[str, Any], to: Checker) -> None:
        self.drafts = drafts
        self.to = to
        self._meant: dict[str, str | None] = {}
        self.loops: dict[str, str] = {}  # inner block -> its loop
        self._read_loops()
        self.entry = self._find(workflow.get("entry"))
        self.written = list(islice(self._written(workflow), MAX_EDGES + 1))
        if len(self.written) > MAX_EDGES:
            to.report(
                ("blocks",),
                f"has more than {MAX_EDGES} edges (`depends`, exits, transitions); that is the most allowed",
            )
        self.edges = self._edges(is_ordered=self._is_ordered(workflow))
        self._places = {(edge.source, edge.target): at for edge, at in reversed(self.written)}
        self._graph = BlockGraph({name: self.inner(name) for name in drafts}, self.edges)
        # Where a block waits for something unknown, what follows from it is unknown, too.
        self._broken = self._graph.downstream(self._unit(one.id) for one in drafts.values() if one.is_broken)
        self._check_loops()
        self._check_cycles()
        self._check_reach()

    def _find(self, name: str | None) -> str | None:
        """The block a name means: itself, or the closest one if it is misspelt (which is reported elsewhere)."""
        if name is None or name in self.drafts:
            return name
        if name not in self._meant:
            self._meant[name] = closest(name, self.drafts)
        return self._meant[name]

    # Loops

    def _read_loops(self) -> None:
        for draft in self.drafts.values():
            if draft.kind != "loop":
                continue
            for index, name in placed(draft.get("inner_block_refs", ())):
                inner = self._find(name)
                at = (*draft.at, "inner_block_refs", index)
                if inner is None:
                    continue
                if inner in self.loops and self.loops[inner] != draft.id:
                    self.to.report(at, f"'{inner}' already runs inside the loop '{self.loops[inner]}'")
                elif draft.id in (inner, *self.around(inner)) or inner in self.around(draft.id):
                    self.to.report(at, f"the loop '{draft.id}' cannot contain itself")
                else:
                    self.loops[inner] = draft.id
        for name in list(self.loops):
            if len(self.around(name)) > MAX_LOOP_DEPTH:
                self.to.report(
                    self.drafts[name].at,
                    f"is inside more than {MAX_LOOP_DEPTH} loops; that is as deep as they nest",
                )
                del self.loops[name]

    def around(self, block_id: str) -> list[str]:
        """The loops around a block, innermost first."""
        found: list[str] = []
        while (loop := self.loops.get(block_id)) is not None and len(found) <= MAX_LOOP_DEPTH:
            found.append(loop)
            block_id = loop
        return found

    def _unit(self, block_id: str) -> str:
        """The top-level block that stands for a block."""
        around = self.around(block_id)
        return around[-1] if around else block_id

    def inner(self, loop_id: str) -> list[str]:
        """The inner blocks of a loop in order, the misspelt ones as what they mean."""
        draft = self.drafts[loop_id]
        if draft.kind != "loop":
            return []
        names = (self._find(name) for name in draft.get("inner_block_refs", ()))
        return [name for name in names if name is not None and self.loops.get(name) == loop_id]

    # Edges

    def _written(self, workflow: dict[str, Any]) -> Iterator[Written]:
        for draft in self.drafts.values():
            yield from self._of_block(draft)
        for index, item in placed(workflow.get("transitions", ())):
            at: KeyPath = ("workflow", "transitions", index)
            yield from self._edge(item["from"], item.get("to"), None, at)
        for index, item in placed(workflow.get("conditional_transitions", ())):
            at = ("workflow", "conditional_transitions", index)
            self._check_exits(item, at)
            for exit_, target in item.items():
                if exit_ != "from":
                    yield from self._edge(item["from"], target, exit_, (*at, exit_))

    def _of_block(self, draft: Draft) -> Iterator[Written]:
        for index, name in placed(draft.get("depends", ())):
            place = (index,) if isinstance(draft.raw["depends"], list) else ()
            yield from self._edge(name, draft.id, None, (*draft.at, "depends", *place))
        for key in ("pass", "fail"):
            if draft.kind == "gate" and key in draft.values:
                yield from self._edge(draft.id, draft.get(key), key, (*draft.at, key))
        for index, route in placed(draft.get("routes", ())):
            if "goto" in route:
                at = (*draft.at, "routes", index, "goto")
                yield from self._edge(draft.id, route["goto"], route["exit"], at)
        if "error_route" in draft.values:
            yield from self._edge(draft.id, draft.get("error_route"), None, (*draft.at, "error_route"), True)

    def _edge(
        self, source: str, target: str | None, exit_: str | None, at: KeyPath, is_error: bool = False
    ) -> Iterator[Written]:
        found, aim = self._find(source), self._find(target)
        if found is None or (target is not None and aim is None):
            if aim is not None:
                self.drafts[aim].is_broken = True
            return
        if aim is not None:
            yield Edge(source=found, target=aim, exit=exit_, is_error=is_error), at
        elif exit_ is not None:
            yield Edge(source=found, target="", exit=exit_), at  # this exit ends the branch

    def _check_exits(self, item: dict[str, Any], at: KeyPath) -> None:
        source = self._find(item["from"])
        exits = None if source is None else self.drafts[source].exits
        if exits is None:
            return
        for exit_ in item:
            if exit_ in ("from", DEFAULT_EXIT) or exit_ in exits:
                continue
            close = closest(exit_, exits)
            if close:
                hint = f"Did you mean '{close}'?"
            elif source is not None and self.drafts[source].kind == "dispatch":
                hint = "Its branches are joined before anything follows; use `depends`."
            elif exits:
                hint = f"It has {', '.join(sorted(exits))}."
            else:
                hint = "Declare it in `exits` and choose it by `exit_conditions`."
            self.to.report((*at, exit_), f"block '{source}' has no exit '{exit_}'. {hint}")

    def _is_ordered(self, workflow: dict[str, Any]) -> bool:
        """Whether the blocks run in the order written, because no key or edge sets another order."""
        keys = ("depends", "pass", "fail", "routes")
        inner = self.loops
        return (
            not any(workflow.get(key) for key in ("entry", "transitions", "conditional_transitions"))
            and not any(
                draft.get(key) for draft in self.drafts.values() if draft.id not in inner for key in keys
            )
            and not any(
                self._unit(edge.source) != self._unit(edge.target)
                for edge, _ in self.written
                if edge.target and not edge.is_error
            )
        )

    def _edges(self, *, is_ordered: bool) -> tuple[Edge, ...]:
        edges = [edge for edge, _ in self.written]
        if is_ordered:
            handlers = {edge.target for edge in edges if edge.is_error}
            chain = [name for name in self.drafts if name not in self.loops and name not in handlers]
            edges += [Edge(source=first, target=second) for first, second in pairwise(chain)]
        routed = {(edge.source, edge.target) for edge in edges if edge.exit is not None}
        # A plain edge beside a route between the same two would run the target whatever the exit was.
        kept = (
            edge
            for edge in edges
            if edge.exit is not None or edge.is_error or (edge.source, edge.target) not in routed
        )
        return tuple(dict.fromkeys(kept))

    def _check_loops(self) -> None:
        """Report edges that contradict how a loop starts its blocks and in which order."""
        for edge in self.edges:
            if not edge.target or self._unit(edge.source) != self._unit(edge.target):
                continue
            at = self._places.get((edge.source, edge.target), ())
            if edge.source in self.loops:
                self._check_inside(edge, at)
            elif edge.target in self.loops:
                self.to.report(at, f"'{edge.target}' runs inside the loop '{edge.source}' and starts with it")
            else:
                self.to.report(
                    at, f"block '{edge.source}' waits for itself; to repeat it, put it into a `loop`"
                )

    def _check_inside(self, edge: Edge, at: KeyPath) -> None:
        """A loop runs its blocks in order; a plain edge inside it may only repeat that order."""
        loop = self.loops[edge.source]
        if edge.exit is not None or edge.is_error or self.loops.get(edge.target) != loop:
            return
        order = self.inner(loop)
        if order.index(edge.source) >= order.index(edge.target):
            self.to.report(
                at,
                f"'{edge.target}' comes before '{edge.source}' in the loop '{loop}'; "
                "what it needs from the round before comes by `carry_context`",
            )

    # Cycles and reach

    def _check_cycles(self) -> None:
        """Name one shortest cycle for each group of blocks that wait for each other."""
        sorted_ones = set(self._graph.order)
        left = dict.fromkeys(name for name in self._graph.top if name not in sorted_ones)
        # What merely comes after a cycle is not part of one.
        for name in reversed(list(left)):
            if not any(link.target in left for link in self._graph.outgoing[name]):
                del left[name]
        while left:
            start = next(iter(left))
            cycle = self._cycle_through(start, left)
            for name in cycle or [start]:
                left.pop(name, None)
            if cycle:
                last = next(link for link in self._graph.outgoing[cycle[-1]] if link.target == start)
                at = self._places.get((last.edge.source, last.edge.target), ())
                path = " → ".join([*cycle, start])
                them = "both" if len(cycle) == 2 else "them"
                self.to.report(at, f"{path} is a cycle; put {them} into a `loop`")

    def _cycle_through(self, start: str, among: Iterable[str]) -> list[str]:
        """The shortest way from a block back to itself, if there is one."""
        came_from: dict[str, str] = {}
        pending = deque([start])
        while pending:
            name = pending.popleft()
            for link in self._graph.outgoing[name]:
                if link.target == start:
                    path = [name]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if link.target in among and link.target not in came_from:
                    came_from[link.target] = name
                    pending.append(link.target)
        return []

    def _check_reach(self) -> None:
        """With an entry, whatever it does not reach is an error."""
        if self.entry is None:
            return
        if self.entry in self.loops:
            loop = self.loops[self.entry]
            self.to.report(
                ("workflow", "entry"), f"'{self.entry}' runs inside the loop '{loop}'; enter by '{loop}'"
            )
        reached = self._graph.downstream([self._unit(self.entry)]) | self._broken
        for name in self._graph.top:
            if name not in reached:
                self.to.report(
                    ("blocks", name),
                    f"is never reached from the entry '{self.entry}'; connect it by `depends` or a transition, or remove it",
                )

    @cached_property
    def _open(self) -> set[str]:
        """The top-level blocks of which errors leave open what they see."""
        return self._broken | (set(self._graph.top) - set(self._graph.order))

    def sees(self, viewer: str, name: str) -> bool:
        """Whether a block may read the results of another; yes where errors leave it open."""
        return self._unit(viewer) in self._open or name in self._graph.upstream(viewer)
