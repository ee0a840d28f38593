"""Layered drawing of a directed graph: layers by longest path, order by barycentre, places by least squares."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

Links = dict[int, list[int]]


@dataclass
class Layered:
    """A graph cut into layers; vertices from `real` on are the bends of long edges."""

    real: int
    layers: list[list[int]]
    successors: Links
    predecessors: Links
    chains: list[list[int]] = field(default_factory=list)  # per edge: source, bends, target


def without_cycles(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges, with those that close a cycle reversed."""
    targets: Links = defaultdict(list)
    for source, target in edges:
        targets[source].append(target)
    state = [0] * count  # 0 unseen, 1 on the path, 2 done
    backward: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(targets[root]))]
        while stack:
            vertex, rest = stack[-1]
            for target in rest:
                if state[target] == 1:
                    backward.add((vertex, target))
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(targets[target])))
                    break
            else:
                state[vertex] = 2
                stack.pop()
    return [(t, s) if (s, t) in backward else (s, t) for s, t in edges]


def ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each vertex: one more than the deepest of what it follows."""
    sources: Links = {vertex: [] for vertex in range(count)}
    for source, target in edges:
        sources[target].append(source)
    rank = [0] * count
    for vertex in TopologicalSorter(sources).static_order():
        rank[vertex] = max((rank[source] + 1 for source in sources[vertex]), default=0)
    return rank


def layered(count: int, edges: Sequence[tuple[int, int]]) -> Layered:
    """The graph in layers, long edges bent once in each layer they cross, few crossings."""
    rank = ranks(count, edges)
    layers: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    for vertex in range(count):
        layers[rank[vertex]].append(vertex)
    graph = Layered(count, layers, defaultdict(list), defaultdict(list))
    fresh = count
    for source, target in edges:
        bends = range(fresh, fresh + rank[target] - rank[source] - 1)
        fresh += len(bends)
        for offset, bend in enumerate(bends, start=1):
            layers[rank[source] + offset].append(bend)
        chain = [source, *bends, target]
        graph.chains.append(chain)
        for one, other in itertools.pairwise(chain):
            graph.successors[one].append(other)
            graph.predecessors[other].append(one)
    place = [0.0] * fresh
    for layer in layers:
        _number(layer, place)
    for layer, neighbours in _passes(graph, rounds=4 if fresh < 2000 else 1):
        layer.sort(key=_means(layer, neighbours, place).__getitem__)
        _number(layer, place)
    return graph


def _number(layer: list[int], place: list[float]) -> None:
    for index, vertex in enumerate(layer):
        place[vertex] = float(index)


def _passes(graph: Layered, rounds: int) -> Iterator[tuple[list[int], Links]]:
    """The layers from left to right with what comes before each, then back with what follows, again and again."""
    for _ in range(rounds):
        yield from ((layer, graph.predecessors) for layer in graph.layers[1:])
        yield from ((layer, graph.successors) for layer in graph.layers[-2::-1])


def _means(layer: list[int], neighbours: Links, at: list[float]) -> dict[int, float]:
    """Where each vertex would be in the middle of its neighbours."""
    return {
        vertex: sum(at[near] for near in neighbours[vertex]) / len(neighbours[vertex])
        if neighbours.get(vertex)
        else at[vertex]
        for vertex in layer
    }


def centres(graph: Layered, heights: Sequence[float], gap: float) -> list[float]:
    """The middle of every vertex across the layers: near its neighbours, in order, never overlapping."""
    size = [*heights, *[0.0] * (sum(map(len, graph.layers)) - graph.real)]
    at = [0.0] * len(size)
    for layer in graph.layers:
        _spread(layer, size, gap, dict.fromkeys(layer, 0.0), at)
    for layer, neighbours in _passes(graph, rounds=2):
        _spread(layer, size, gap, _means(layer, neighbours, at), at)
    return at


def _spread(
    layer: list[int], size: list[float], gap: float, wanted: dict[int, float], at: list[float]
) -> None:
    """Least squares with the order kept: neighbours that would overlap are pooled and share their mean."""
    pools: list[tuple[float, int]] = []  # mean of (wanted - offset), members
    offsets = []
    offset = 0.0
    for index, vertex in enumerate(layer):
        if index:
            offset += (size[layer[index - 1]] + size[vertex]) / 2 + gap
        offsets.append(offset)
        mean, members = wanted[vertex] - offset, 1
        while pools and pools[-1][0] > mean:
            other, many = pools.pop()
            mean = (mean * members + other * many) / (members + many)
            members += many
        pools.append((mean, members))
    index = 0
    for mean, members in pools:
        for _ in range(members):
            at[layer[index]] = mean + offsets[index]
            index += 1
