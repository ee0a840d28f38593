"""How the blocks of a definition hang together: scopes, links, and what lies upstream of what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from workflows_app.engine.definition import Edge, LoopBlockDef, WorkflowDefinition


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


class BlockGraph:
    """The links between blocks by scope: the top level, and the inside of each loop.

    `inner` has every block, and for a loop the blocks inside it, in order.
    """

    def __init__(self, inner: Mapping[str, Sequence[str]], edges: Iterable[Edge]) -> None:
        self._inner = inner
        self.loops = {ref: loop for loop, refs in inner.items() for ref in refs}
        self.top = tuple(block_id for block_id in inner if block_id not in self.loops)
        self.outgoing: dict[str, list[Link]] = {block_id: [] for block_id in inner}
        self.incoming: dict[str, list[Link]] = {block_id: [] for block_id in inner}
        self.leaving: dict[str, list[Link]] = {}  # by the inner block the edge really begins at
        links = [link for edge in dict.fromkeys(edges) if edge.target and (link := self._lift(edge))]
        routed = {(link.edge.source, link.target) for link in links if link.edge.exit is not None}
        for link in links:
            # A plain link beside an exit of the same pair would run the target whatever the exit was.
            if link.is_route or (link.edge.source, link.target) not in routed:
                self._add(link)

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

    def downstream(self, starts: Iterable[str]) -> set[str]:
        """Some top-level blocks, and all that they lead to."""
        reached = set(starts)
        pending = list(reached)
        while pending:
            for link in self.outgoing[pending.pop()]:
                if link.target not in reached:
                    reached.add(link.target)
                    pending.append(link.target)
        return reached

    @cached_property
    def order(self) -> list[str]:
        """Top-level blocks, each after what leads to it; those in or after a cycle are left out."""
        waiting = {block_id: len(self.incoming[block_id]) for block_id in self.top}
        order = [block_id for block_id, count in waiting.items() if count == 0]
        for block_id in order:  # which grows meanwhile
            for link in self.outgoing[block_id]:
                waiting[link.target] -= 1
                if waiting[link.target] == 0:
                    order.append(link.target)
        return order

    @cached_property
    def _bits(self) -> dict[str, int]:
        """A bit for each block: sets of blocks are numbers, or a long chain would hold a million names."""
        return {block_id: 1 << place for place, block_id in enumerate(self._inner)}

    @cached_property
    def _above(self) -> dict[str, int]:
        """For each top-level block the ones above it, with what is inside them."""
        above = dict.fromkeys(self.top, 0)
        for source in self.order:
            seen = above[source] | self._whole(source)
            for link in self.outgoing[source]:
                above[link.target] |= seen
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
            # Later ones reach the next round only through `carry_context`.
            mask |= self._whole(*inner[: inner.index(inside)])
        return BlockSet(self._bits, mask)

    def with_inside(self, seen: BlockSet, loop_id: str) -> BlockSet:
        """`seen` and the blocks inside a loop."""
        return BlockSet(self._bits, seen.mask | self._whole(loop_id) & ~self._bits[loop_id])

    def inside(self, block_id: str, *, deep: bool = False) -> list[str]:
        """The inner blocks of a loop in order, with those of the loops among them if `deep`."""
        inner = list(self._inner[block_id])
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


class Graph(BlockGraph):
    """The graph of a definition, as a run follows it."""

    def __init__(self, definition: WorkflowDefinition) -> None:
        blocks, entry = definition.blocks, definition.entry
        super().__init__(
            {
                name: one.inner_block_refs if isinstance(one, LoopBlockDef) else ()
                for name, one in blocks.items()
            },
            definition.edges,
        )
        # By block, the exits after which its branch ends.
        self.ends = {
            block.id: {route.exit for route in block.routes if route.goto is None}
            for block in blocks.values()
        }
        for edge in definition.edges:
            if not edge.target and edge.exit is not None:
                self.ends[edge.source].add(edge.exit)
        if entry is None and not any(self.outgoing[block_id] for block_id in self.top):
            for source, target in pairwise(self.top):
                self._add(Link(Edge(source=source, target=target), source, target))
        if entry is not None:
            # Only these take part; links from the others no longer hold anything up.
            reached = self.downstream([self._scopes(entry)[0]])
            for block_id in reached:
                self.incoming[block_id] = [one for one in self.incoming[block_id] if one.source in reached]
            self.top = tuple(block_id for block_id in self.top if block_id in reached)
        self._weaken()

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
