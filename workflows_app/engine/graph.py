"""How the blocks of a definition hang together: scopes, links, and what lies upstream of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from workflows_app.engine.definition import BaseBlockDef, Edge, LoopBlockDef, WorkflowDefinition


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """An edge between two blocks of one scope; one that crosses a loop's border ends at the loop instead."""

    edge: Edge
    source: str
    target: str
    is_weak: bool = False  # starts its target only if no route to it was refused

    @property
    def is_route(self) -> bool:
        """Whether it is taken only for one outcome of its source."""
        return self.edge.is_error or self.edge.exit is not None

    @property
    def leaves_loop(self) -> bool:
        """Whether the edge begins inside the loop that stands for its source here."""
        return self.edge.source != self.source


@dataclass(frozen=True, slots=True)
class BlockSet:
    """Some of a definition's blocks."""

    bits: Mapping[str, int]
    mask: int

    def __contains__(self, block_id: object) -> bool:
        return bool(self.mask & self.bits.get(block_id, 0))  # type: ignore[call-overload]


class Graph:
    """The links of a definition by scope: the top level, and the inside of each loop."""

    def __init__(self, definition: WorkflowDefinition) -> None:
        self.blocks: Mapping[str, BaseBlockDef] = definition.blocks
        self.loops: Mapping[str, str] = definition.inner_blocks
        self.outgoing: dict[str, list[Link]] = {block_id: [] for block_id in self.blocks}
        self.incoming: dict[str, list[Link]] = {block_id: [] for block_id in self.blocks}
        self.leaving: dict[str, list[Link]] = {}  # by the inner block the edge really begins at
        self.ends = _ends(definition)  # by block, the exits after which its branch ends
        edges = [edge for edge in dict.fromkeys(definition.edges) if edge.target]
        links = [link for edge in edges if (link := self._lift(edge))]
        links = list(_without_implied(links))
        top = [block_id for block_id in self.blocks if block_id not in self.loops]
        if definition.entry is None and not any(link.source not in self.loops for link in links):
            links += [_order(source, target) for source, target in pairwise(top)]
        for link in links:
            self._add(link)
        self.top: tuple[str, ...] = self._reached(definition.entry, top)
        self._weaken()

    def _add(self, link: Link) -> None:
        self.outgoing[link.source].append(link)
        self.incoming[link.target].append(link)
        if link.leaves_loop:
            self.leaving.setdefault(link.edge.source, []).append(link)

    def _scopes(self, block_id: str) -> list[str]:
        """The block and the loops around it, outermost first."""
        chain = [block_id]
        while (loop := self.loops.get(chain[-1])) is not None and loop not in chain:
            chain.append(loop)
        return chain[::-1]

    def _lift(self, edge: Edge) -> Link | None:
        """The edge as a link between siblings; None for one between a loop and its own inside."""
        if edge.source == edge.target and edge.source in self.loops:
            return Link(edge, edge.source, edge.target)  # an inner block that asks for another round
        for source, target in zip(self._scopes(edge.source), self._scopes(edge.target), strict=False):
            if source != target:
                return Link(edge, source, target)
        return None

    def _reached(self, entry: str | None, top: list[str]) -> tuple[str, ...]:
        """The top-level blocks that take part; links from the others no longer hold anything up."""
        if entry is None:
            return tuple(top)
        reached = {self._scopes(entry)[0]}
        pending = list(reached)
        while pending:
            for link in self.outgoing[pending.pop()]:
                if link.target not in reached:
                    reached.add(link.target)
                    pending.append(link.target)
        for block_id in reached:
            self.incoming[block_id] = [link for link in self.incoming[block_id] if link.source in reached]
        return tuple(block_id for block_id in top if block_id in reached)

    def _weaken(self) -> None:
        """Let a route decide where a plain link from above the route's own source would overrule it.

        `publish` depends on `draft` for its text and is the `pass` of a gate below `draft`: a failed gate must skip it.
        """
        for block_id in self.top:
            links = self.incoming[block_id]
            deciders = {link.source for link in links if link.is_route}
            deciders -= {link.source for link in links if not link.is_route}
            if not deciders or len(deciders) == len(links):
                continue
            above = [self._above[source] for source in deciders]
            for index, link in enumerate(links):
                if not link.is_route and any(mask & self._bits[link.source] for mask in above):
                    links[index] = weak = Link(link.edge, link.source, link.target, is_weak=True)
                    siblings = self.outgoing[link.source]
                    siblings[siblings.index(link)] = weak

    @cached_property
    def _bits(self) -> dict[str, int]:
        """A bit for each block: sets of blocks are numbers, or a long chain would hold a million names."""
        return {block_id: 1 << place for place, block_id in enumerate(self.blocks)}

    @cached_property
    def _above(self) -> dict[str, int]:
        """For each top-level block the ones above it, with what is inside them."""
        above = dict.fromkeys(self.top, 0)
        waiting = {block_id: len(self.incoming[block_id]) for block_id in self.top}
        ready = [block_id for block_id, count in waiting.items() if count == 0]
        while ready:
            source = ready.pop()
            seen = above[source] | self._whole(source)
            for link in self.outgoing[source]:
                above[link.target] |= seen
                waiting[link.target] -= 1
                if waiting[link.target] == 0:
                    ready.append(link.target)
        return above

    def _whole(self, *block_ids: str) -> int:
        """Some blocks with everything inside them."""
        bits = self._bits
        mask = 0
        for block_id in block_ids:
            mask |= bits[block_id]
            for inner in self.inside(block_id, deep=True):
                mask |= bits[inner]
        return mask

    def upstream(self, block_id: str) -> BlockSet:
        """The blocks whose results a block may read: all above it, and those before it in its loops."""
        scopes = self._scopes(block_id)
        mask = self._above.get(scopes[0], 0)
        for loop, inside in pairwise(scopes):
            inner = self.inside(loop)
            # Later ones tell the next round by `carry_context`.
            mask |= self._whole(*inner[: inner.index(inside)])
        return BlockSet(self._bits, mask)

    def with_inside(self, seen: BlockSet, loop_id: str) -> BlockSet:
        """The given blocks and those inside a loop."""
        return BlockSet(self._bits, seen.mask | self._whole(loop_id) & ~self._bits[loop_id])

    def inside(self, block_id: str, *, deep: bool = False) -> list[str]:
        """The inner blocks of a loop in order, with those of the loops among them if `deep`."""
        block = self.blocks[block_id]
        if not isinstance(block, LoopBlockDef):
            return []
        inner = list(block.inner_block_refs)
        return inner + [one for ref in inner for one in self.inside(ref, deep=True)] if deep else inner

    def around(self, block_id: str) -> list[str]:
        """The loops around a block, outermost first."""
        return self._scopes(block_id)[:-1]

    def sources(self, block_id: str) -> list[str]:
        """The blocks that lead to this one: linked to it, or before it in its loop."""
        loop = self.loops.get(block_id)
        if loop is None:
            return list(dict.fromkeys(link.source for link in self.incoming[block_id]))
        inner = self.inside(loop)
        place = inner.index(block_id)
        return [inner[place - 1]] if place else self.sources(loop)

    def terminals(self) -> list[str]:
        """The top-level blocks after which nothing comes unless they fail."""
        return [
            block_id for block_id in self.top if all(link.edge.is_error for link in self.outgoing[block_id])
        ]


def _ends(definition: WorkflowDefinition) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for edge in definition.edges:
        if not edge.target and edge.exit is not None:
            found.setdefault(edge.source, set()).add(edge.exit)
    for block in definition.blocks.values():
        for route in block.routes:
            if route.goto is None:
                found.setdefault(block.id, set()).add(route.exit)
    return {block_id: frozenset(exits) for block_id, exits in found.items()}


def _order(source: str, target: str) -> Link:
    return Link(Edge(source=source, target=target), source, target)


def _without_implied(links: list[Link]) -> Iterator[Link]:
    """Drop a plain link beside an exit of the same pair: it would run the target whatever the exit was."""
    routed = {(link.edge.source, link.target) for link in links if link.edge.exit is not None}
    for link in links:
        if link.is_route or (link.edge.source, link.target) not in routed:
            yield link
