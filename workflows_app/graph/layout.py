"""Where each block and edge goes: left to right in layers, loops around their inner blocks."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from workflows_app.graph.layers import centres, layered, without_cycles

NODE_WIDTH, NODE_HEIGHT = 220.0, 60.0
GAP_X, GAP_Y = 52.0, 24.0
LABEL_WIDTH = 7.0  # of one character of an edge's label
PAD, HEADER = 16.0, 40.0

Point = tuple[float, float]


@dataclass(frozen=True)
class GraphNode:
    """A block as the graph shows it; `parent` is the loop that encloses it."""

    id: str
    kind: str
    label: str = ""
    status: str | None = None
    score: float | None = None
    dots: tuple[str, ...] = ()  # passed, failed, error: one per assertion
    href: str | None = None
    parent: str | None = None


@dataclass(frozen=True)
class GraphEdge:
    """A way from one block to another: normal, a route of a gate, or what follows an error."""

    source: str
    target: str
    label: str = ""
    kind: str = "normal"


# An edge, and the members of one group that it joins: its ends, or the loops around them.
Link = tuple[GraphEdge, str, str]


@dataclass(frozen=True)
class PlacedNode:
    """A block and its box."""

    node: GraphNode
    x: float
    y: float
    width: float
    height: float
    is_group: bool = False


@dataclass(frozen=True)
class RoutedEdge:
    """An edge and the points it runs through."""

    edge: GraphEdge
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """A whole picture; groups come before the nodes they enclose."""

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[RoutedEdge, ...]


def layout(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> Layout:
    """Place every block. Edges to unknown blocks are left out, a cycle is drawn with one edge running back."""
    known = {node.id: node for node in nodes}
    parents = {id_: _enclosing(node, known) for id_, node in known.items()}
    children: dict[str | None, list[GraphNode]] = {}
    for node in known.values():
        children.setdefault(parents[node.id], []).append(node)
    inner: dict[str | None, list[Link]] = {}
    for edge in edges:
        if edge.source in known and edge.target in known:
            level = _common_level(edge, parents)
            if level is not None:
                inner.setdefault(level[0], []).append((edge, level[1], level[2]))
    return _place(None, children, inner)


def _enclosing(node: GraphNode, known: dict[str, GraphNode]) -> str | None:
    """The parent, unless it is unknown or following parents leads back to the node."""
    seen = {node.id}
    parent = node.parent
    while parent in known:
        if parent in seen:
            return None
        seen.add(parent)
        parent = known[parent].parent
    return node.parent if node.parent in known else None


def _common_level(edge: GraphEdge, parents: dict[str, str | None]) -> tuple[str | None, str, str] | None:
    """The innermost group that holds both ends, and the members of it that the edge joins."""
    above: dict[str | None, str] = {}
    at: str | None = edge.source
    while at is not None:
        above[parents[at]] = at
        at = parents[at]
    at = edge.target
    while at is not None:
        if parents[at] in above:
            source = above[parents[at]]
            return None if source == at else (parents[at], source, at)
        at = parents[at]
    return None


def _place(
    group: str | None,
    children: dict[str | None, list[GraphNode]],
    inner: dict[str | None, list[Link]],
) -> Layout:
    members = children.get(group, [])
    insides = {node.id: _place(node.id, children, inner) for node in members if node.id in children}
    sizes = [_size(insides.get(node.id)) for node in members]
    index = {node.id: i for i, node in enumerate(members)}
    links = inner.get(group, [])
    if group is not None and not links:  # inner blocks of a loop run in the order written
        pairs = itertools.pairwise(members)
        links = [(GraphEdge(a.id, b.id), a.id, b.id) for a, b in pairs]
    graph = layered(len(members), without_cycles(len(members), [(index[s], index[t]) for _, s, t in links]))
    ways = [(edge, source, chain) for (edge, source, _), chain in zip(links, graph.chains, strict=True)]
    middles = centres(graph, [height for _, height in sizes], GAP_Y)
    layer_of = {vertex: i for i, layer in enumerate(graph.layers) for vertex in layer}
    columns = _columns(graph.layers, sizes, [(edge.label, layer_of[chain[0]]) for edge, _, chain in ways])
    top = min(
        [y - 4 for y in middles] + [middles[i] - size[1] / 2 for i, size in enumerate(sizes)], default=0.0
    )
    boxes = [
        PlacedNode(
            node, columns[layer_of[i]][0], middles[i] - sizes[i][1] / 2 - top, *sizes[i], node.id in insides
        )
        for i, node in enumerate(members)
    ]
    placed: list[PlacedNode] = []
    routed: list[RoutedEdge] = []
    for box in boxes:
        placed.append(box)
        if box.is_group:
            inside, dx, dy = insides[box.node.id], box.x + PAD, box.y + HEADER
            placed += [replace(one, x=one.x + dx, y=one.y + dy) for one in inside.nodes]
            routed += [
                RoutedEdge(way.edge, tuple((x + dx, y + dy) for x, y in way.points)) for way in inside.edges
            ]
    for edge, source, chain in ways:
        points = _route(chain, boxes, columns, layer_of, middles, top)
        is_turned = chain[0] != index[source]
        routed.append(RoutedEdge(edge, tuple(reversed(points)) if is_turned else tuple(points)))
    width = max((left + wide for left, wide in columns), default=0.0)
    height = max([box.y + box.height for box in boxes] + [y - top + 4 for y in middles], default=0.0)
    return Layout(width, height, tuple(placed), tuple(routed))


def _size(inside: Layout | None) -> tuple[float, float]:
    if inside is None:
        return NODE_WIDTH, NODE_HEIGHT
    return max(NODE_WIDTH, inside.width + 2 * PAD), inside.height + HEADER + PAD


def _columns(
    layers: Sequence[Sequence[int]],
    sizes: Sequence[tuple[float, float]],
    labels: Iterable[tuple[str, int]],
) -> list[tuple[float, float]]:
    """Left edge and width of each layer; a gap is as wide as the longest label that starts in it."""
    gaps = [GAP_X] * len(layers)
    for label, at in labels:
        gaps[at] = max(gaps[at], min(len(label), 18) * LABEL_WIDTH + 40 if label else 0)
    columns = []
    left = 0.0
    for layer, gap in zip(layers, gaps, strict=True):
        width = max((sizes[v][0] for v in layer if v < len(sizes)), default=0.0)
        columns.append((left, width))
        left += width + gap
    return columns


def _route(
    chain: list[int],
    boxes: list[PlacedNode],
    columns: list[tuple[float, float]],
    layer_of: dict[int, int],
    middles: list[float],
    top: float,
) -> list[Point]:
    source, target = boxes[chain[0]], boxes[chain[-1]]
    points = [(source.x + source.width, source.y + source.height / 2)]
    for bend in chain[1:-1]:
        left, width = columns[layer_of[bend]]
        points += [(left, middles[bend] - top), (left + width, middles[bend] - top)]
    points.append((target.x, target.y + target.height / 2))
    return points
