"""The blocks of a run as its page shows them: rows in the order they run, and the graph."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.urls import reverse
from django.utils.safestring import SafeString

from workflows_app.engine.definition import DispatchBlockDef, WorkflowDefinition
from workflows_app.engine.graph import Graph
from workflows_app.graph.definition import drawing_of
from workflows_app.graph.draw import MOST_DOTS, worst_first
from workflows_app.graph.layout import GraphNode
from workflows_app.models import NodeStatus, Run, RunEvent, RunNode, RunStatus

# Everything a row prints; texts may be a megabyte each and are read for one node only.
ROW_FIELDS = (
    "run_id", "node_id", "block_type", "iteration", "attempt", "status", "cost_usd", "tokens", "latency_ms",
    "soul_id", "exit_handle", "details", "started_at", "finished_at", "eval_score", "eval_passed", "eval_results", "delta",
)  # fmt: skip


ROWS_A_PAGE = 50


@dataclass(frozen=True)
class BlockRow:
    """One block of the run: its last execution, or that there is none yet."""

    run: Run
    block_id: str
    kind: str
    depth: int
    executions: tuple[RunNode, ...]
    is_under_way: bool = False  # something inside it has begun
    has_assertions: bool = False  # otherwise it is only measured, and no score will come

    @property
    def node(self) -> RunNode | None:
        return self.executions[-1] if self.executions else None

    @property
    def anchor(self) -> str:
        return f"block-{self.block_id}"

    @property
    def url(self) -> str:
        return reverse("run-node", args=(self.run.pk, self.node.pk)) if self.node else ""

    @property
    def status(self) -> str:
        if self.node:
            return self.node.status
        if self.run.is_terminal:
            return NodeStatus.SKIPPED
        return NodeStatus.RUNNING if self.is_under_way else NodeStatus.PENDING

    @property
    def shown(self) -> str:
        """The word that colours it: a block that ran but did not pass is not shown as good."""
        if self.node and self.node.eval_passed is False:
            return self.node.verdict
        return self.status

    @property
    def words(self) -> tuple[str, ...]:
        return self.node.assertion_words if self.node else ()

    @property
    def dots(self) -> tuple[str, ...]:
        """One for each assertion; of many, those that did not pass come first and are kept."""
        return worst_first(self.words, MOST_DOTS)

    @property
    def undotted(self) -> int:
        return len(self.words) - len(self.dots)

    @property
    def is_graded(self) -> bool:
        return self.node is not None and self.node.eval_passed is not None

    @property
    def needs_attention(self) -> bool:
        return self.node is not None and (
            self.node.eval_passed is False or self.node.status == NodeStatus.FAILED
        )

    @property
    def about(self) -> str:
        """The small line under the name."""
        if self.node is None:
            return self.kind
        words = [self.kind, str(self.node.details.get("model") or "")]
        rounds = self.node.iteration
        words.append(f"round {rounds}" if rounds > 1 else "")
        words.append(f"attempt {self.node.attempt}" if self.node.attempt > 1 else "")
        words.append(f"took “{self.node.exit_handle}”" if self.node.exit_handle else "")
        return " · ".join(word for word in words if word)

    @property
    def score_delta(self) -> float | None:
        return (self.node.delta or {}).get("score_delta") if self.node else None

    @property
    def tally(self) -> str:
        """The dots in words."""
        if not self.words:
            return ""
        return f"{self.words.count('passed')} of {len(self.words)} assertions passed"


class RunBlocks:
    """All blocks of one run; two queries whatever their number. Of many, a page is shown."""

    def __init__(self, run: Run, *, page: int = 1, is_graph_asked: bool = False) -> None:
        self.run = run
        self.page = page
        self.is_graph_asked = is_graph_asked
        self.definition = run.version.readable_definition
        self.loops: Mapping[str, str] = self.definition.inner_blocks if self.definition else {}
        self.nodes: list[RunNode] = list(run.nodes.only(*ROW_FIELDS).order_by("id"))

    @cached_property
    def by_block(self) -> Mapping[str, tuple[RunNode, ...]]:
        found: dict[str, list[RunNode]] = {}
        for node in sorted(self.nodes, key=lambda one: (one.iteration, one.attempt)):
            found.setdefault(node.node_id, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def rows(self) -> list[BlockRow]:
        rows = [self._row(name, kind, depth) for name, kind, depth in blocks_in_order(self.definition)]
        known = {row.block_id for row in rows}
        return rows + [
            self._row(name, nodes[-1].block_type, 0)
            for name, nodes in self.by_block.items()
            if name not in known
        ]

    @cached_property
    def listed(self) -> Page[BlockRow]:
        """The rows of the page, in the order they run; what needs attention is on the first."""
        worst_first = sorted(self.rows, key=lambda row: not row.needs_attention)
        page = Paginator(worst_first, ROWS_A_PAGE).get_page(self.page)
        chosen = {row.block_id for row in page.object_list}
        page.object_list = [row for row in self.rows if row.block_id in chosen]
        return page

    def _row(self, block_id: str, kind: str, depth: int) -> BlockRow:
        is_under_way = any(self.loops.get(name) == block_id for name in self.by_block)
        nodes = self.by_block.get(block_id, ())
        block = self.definition.blocks.get(block_id) if self.definition else None
        return BlockRow(
            self.run,
            block_id,
            kind,
            depth,
            nodes,
            is_under_way,
            has_assertions=bool(block and block.assertions) or any(node.assertion_words for node in nodes),
        )

    @cached_property
    def graph(self) -> SafeString | None:
        """The drawing; empty where it is large and nobody asked for it."""
        return self.drawn()

    def drawn(self, only: Collection[str] | None = None) -> SafeString | None:
        """The drawing, or some of its blocks with the ways to and from them."""
        if self.definition is None:
            return None
        rows = {row.block_id: row for row in self.rows}
        listed = {row.block_id for row in self.listed}

        def decorate(node: GraphNode) -> GraphNode:
            row = rows[node.id]
            score = row.node.eval_score if row.node else None
            href = f"#{row.anchor}" if row.block_id in listed else row.url or None
            return replace(node, status=row.shown, score=score, dots=row.words, href=href)

        title = f"{self.run.workflow.slug} #{self.run.number}"
        return drawing_of(self.definition, decorate, is_asked=self.is_graph_asked, title=title, only=only)

    @property
    def first_to_look_at(self) -> BlockRow | None:
        """What the inspector shows when nobody chose: the first bad block, else the last that has an output."""
        begun = [row for row in self.listed if row.node and row.status != NodeStatus.SKIPPED]
        bad = [row for row in begun if row.needs_attention]
        return bad[0] if bad else begun[-1] if begun else None

    def to_inspect(self, shown: str, *, is_chosen: bool) -> BlockRow | None:
        """What an open page's inspector shows next: a block that failed comes before one that nobody chose."""
        now = next((row for row in self.rows if row.block_id == shown), None)
        first = self.first_to_look_at
        if now and (is_chosen or now.needs_attention or not (first and first.needs_attention)):
            return now
        return first

    def changed(self, events: Iterable[RunEvent], since: dt.datetime | None) -> list[BlockRow]:
        """The rows that events are about, the loops around them, and blocks passed by since: those have no event."""
        names = {event.data.get("node_id") for event in events}
        names |= {self.loops[name] for name in names if name in self.loops}

        def is_passed_by(row: BlockRow) -> bool:
            node = row.node
            if node is None or node.status != NodeStatus.SKIPPED:
                return False
            return since is None or node.finished_at is None or node.finished_at >= since

        return [row for row in self.rows if row.block_id in names or is_passed_by(row)]

    @property
    def passed_by(self) -> int:
        return sum(row.status == NodeStatus.SKIPPED for row in self.rows)

    @property
    def done(self) -> int:
        """How many blocks came to their end; those a failed or cancelled run never reached did not."""
        open_ = (NodeStatus.PENDING, NodeStatus.RUNNING, NodeStatus.CANCELLED)
        reached_all = self.run.status == RunStatus.COMPLETED
        return sum(row.status not in open_ and (reached_all or row.node is not None) for row in self.rows)


def blocks_in_order(definition: WorkflowDefinition | None) -> Iterable[tuple[str, str, int]]:
    """Every block with its kind and depth, as they run: sources first, a loop's inside after it."""
    if definition is None:
        return
    graph = Graph(definition)
    for block_id in graph.order:
        yield from _with_inside(definition, graph, block_id, 0)


def _with_inside(
    definition: WorkflowDefinition, graph: Graph, block_id: str, depth: int
) -> Iterable[tuple[str, str, int]]:
    block: Any = definition.blocks[block_id]
    yield block_id, block.type, depth
    if isinstance(block, DispatchBlockDef):
        for branch in block.branches:
            yield f"{block_id}.{branch.id}", block.type, depth + 1
    for inner in graph.inside(block_id):
        yield from _with_inside(definition, graph, inner, depth + 1)
