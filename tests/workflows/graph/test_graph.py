"""The graph: no boxes overlap, edges reach their blocks, names cannot break out."""

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from workflows_app.engine.validate import compile_document
from workflows_app.graph.definition import definition_graph
from workflows_app.graph.draw import graph_svg
from workflows_app.graph.layout import GraphEdge, GraphNode, Layout, layout

HOSTILE = "<script>alert('x')</script>\"&\x07"


def chain(*ids: str) -> list[GraphEdge]:
    return [GraphEdge(a, b) for a, b in pairwise(ids)]


def blocks(*ids: str) -> list[GraphNode]:
    return [GraphNode(id_, "llm") for id_ in ids]


def boxes(picture: Layout) -> dict[str, tuple[float, float, float, float]]:
    return {b.node.id: (b.x, b.y, b.x + b.width, b.y + b.height) for b in picture.nodes}


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] - 1e-6 and b[1] < a[3] - 1e-6


def random_graph(count: int, seed: int) -> tuple[list[GraphNode], list[GraphEdge]]:
    chance = random.Random(seed)
    edges = [
        GraphEdge(f"b{chance.randrange(i)}", f"b{i}")
        for i in range(1, count)
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    return blocks(*(f"b{i}" for i in range(count))), edges


def test_a_chain_runs_from_left_to_right_on_one_line():
    at = boxes(layout(blocks("a", "b", "c"), chain("a", "b", "c")))
    assert at["a"][2] < at["b"][0] < at["b"][2] < at["c"][0]
    assert at["a"][1] == at["b"][1] == at["c"][1]


@pytest.mark.parametrize("seed", range(8))
def test_no_boxes_overlap_and_all_lie_inside(seed):
    picture = layout(*random_graph(60, seed))
    at = boxes(picture)
    assert len(at) == 60
    assert not [pair for pair in combinations(at, 2) if overlap(at[pair[0]], at[pair[1]])]
    for left, top, right, bottom in at.values():
        assert left >= 0 and top >= -1e-6
        assert right <= picture.width + 1e-6 and bottom <= picture.height + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_every_edge_starts_and_ends_at_its_blocks_and_runs_forward(seed):
    picture = layout(*random_graph(40, seed))
    at = boxes(picture)
    for way in picture.edges:
        assert way.points[0][0] == pytest.approx(at[way.edge.source][2])
        assert way.points[-1][0] == pytest.approx(at[way.edge.target][0])
        assert [x for x, _ in way.points] == sorted(x for x, _ in way.points)


def test_a_long_edge_passes_no_box():
    picture = layout(blocks("a", "b", "c", "d"), [*chain("a", "b", "c", "d"), GraphEdge("a", "d")])
    at = boxes(picture)
    (way,) = [w for w in picture.edges if (w.edge.source, w.edge.target) == ("a", "d")]
    for x, y in way.points[1:-1]:
        assert not any(left <= x <= r and t <= y <= b for left, t, r, b in at.values())


def test_a_diamond_is_symmetric():
    at = boxes(layout(blocks("a", "b", "c", "d"), [*chain("a", "b", "d"), *chain("a", "c", "d")]))
    middle = (at["b"][1] + at["c"][3]) / 2
    assert (at["a"][1] + at["a"][3]) / 2 == pytest.approx(middle)
    assert (at["d"][1] + at["d"][3]) / 2 == pytest.approx(middle)


def test_a_loop_encloses_its_inner_blocks_in_their_order():
    nodes = [
        *blocks("start", "loop", "end"),
        GraphNode("one", "llm", parent="loop"),
        GraphNode("two", "llm", parent="loop"),
    ]
    picture = layout(nodes, chain("start", "loop", "end"))
    at = boxes(picture)
    for inner in ("one", "two"):
        assert at["loop"][0] < at[inner][0] and at[inner][2] < at["loop"][2]
        assert at["loop"][1] < at[inner][1] and at[inner][3] < at["loop"][3]
    assert at["one"][2] < at["two"][0]
    assert at["start"][2] < at["loop"][0] and at["loop"][2] < at["end"][0]
    assert [b.node.id for b in picture.nodes if b.is_group] == ["loop"]


def test_an_edge_out_of_a_loop_leaves_from_the_loop():
    nodes = [*blocks("loop", "end"), GraphNode("inner", "llm", parent="loop")]
    (way,) = layout(nodes, [GraphEdge("inner", "end", "done", "route")]).edges
    at = boxes(layout(nodes, []))
    assert way.points[0][0] == pytest.approx(at["loop"][2])


@pytest.mark.parametrize(
    ("nodes", "edges", "drawn"),
    [
        ([], [], 0),
        (["a"], [], 0),
        (["a"], [("a", "a")], 0),
        (["a", "b"], [("a", "missing"), ("a", "b")], 1),
        (["a", "b"], [("a", "b"), ("b", "a")], 2),
        (["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")], 3),
        (["a", "b"], [("a", "b"), ("a", "b")], 2),
    ],
)
def test_odd_graphs_are_drawn_as_well_as_they_can_be(nodes, edges, drawn):
    picture = layout(blocks(*nodes), [GraphEdge(*edge) for edge in edges])
    assert len(picture.nodes) == len(nodes)
    assert len(picture.edges) == drawn
    ET.fromstring(graph_svg(picture))


def test_parents_in_a_circle_do_not_hang():
    nodes = [
        GraphNode("a", "loop", parent="b"),
        GraphNode("b", "loop", parent="a"),
        GraphNode("c", "llm", parent="gone"),
    ]
    assert len(layout(nodes, []).nodes) == 3


def drawn(nodes: list[GraphNode], edges: list[GraphEdge] | None = None) -> ET.Element:
    return ET.fromstring(graph_svg(layout(nodes, edges or [])))


def test_a_node_can_be_found_followed_and_read():
    node = GraphNode(
        "analyze",
        "llm",
        status="completed",
        score=0.86,
        dots=("passed", "failed"),
        href="/runs/1/?node=analyze",
    )
    (link,) = drawn([node]).findall("a")
    assert link.attrib == {
        "href": "/runs/1/?node=analyze",
        "data-node-id": "analyze",
        "data-status": "completed",
        "class": "graph__node",
        "id": "graph-analyze",
        "data-fresh": "",
    }
    assert link.find("title").text == "analyze, llm, completed, score 0.86, 1 of 2 assertions passed"
    assert [e.get("class") for e in link.find("g")] == ["mark mark--passed", "mark mark--failed"]


def test_a_node_without_a_link_can_still_be_focused():
    (group,) = drawn(blocks("a")).findall("g")
    assert (group.get("tabindex"), group.get("data-status")) == ("0", None)


def test_a_run_keeps_room_for_what_comes_and_a_definition_does_not():
    drawings = [drawn([GraphNode("a", "llm", status=status)]) for status in (None, "pending")]
    kept = [{e.get("class", "").rpartition("__")[2] for e in svg.iter()} for svg in drawings]
    assert kept[1] - kept[0] == {"status", "dots", "score"}


def test_with_many_assertions_the_failed_ones_are_shown():
    (group,) = drawn([GraphNode("a", "llm", dots=("passed",) * 30 + ("failed", "error"))]).findall("g")
    shown = [e.get("class") for e in group.find("g")]
    assert len(shown) == 8
    assert shown[:2] == ["mark mark--failed", "mark mark--error"]
    (group,) = drawn([GraphNode("a", "dispatch", dots=("passed",) * 30)]).findall("g")
    assert len(group.find("g")) == 5  # its longer name takes room


def test_edges_carry_their_kind_and_label():
    svg = drawn(
        blocks("a", "b", "c"),
        [GraphEdge("a", "b", "pass", "route"), GraphEdge("a", "c", "on error", "error")],
    )
    edges = {e.get("class"): e for e in svg.findall("g") if "graph__edge" in e.get("class")}
    route, error = edges["graph__edge graph__edge--route"], edges["graph__edge graph__edge--error"]
    assert "pass" in "".join(route.itertext()) and "on error" in "".join(error.itertext())
    assert (len(route.findall("path")), len(error.findall("path"))) == (1, 2)  # dashes would tear the tip


def test_hostile_names_stay_text():
    nodes = [
        GraphNode(HOSTILE, HOSTILE, HOSTILE, status=HOSTILE, href=HOSTILE),
        GraphNode("b", "llm", parent=HOSTILE),
    ]
    svg = drawn(nodes, [GraphEdge(HOSTILE, HOSTILE, HOSTILE, HOSTILE)])
    assert not list(svg.iter("script"))
    assert svg.find("a").get("href").startswith("<script>")


def test_a_long_name_is_cut_and_kept_in_the_title():
    name = "extract_" * 30
    (group,) = drawn(blocks(name)).findall("g")
    texts = [e.text for e in group.findall("text")]
    assert texts[0].endswith("…") and len(texts[0]) <= 17
    assert name in group.find("title").text
    wide = drawn([GraphNode("a", "llm", "請求書の抽出と検証の手順")]).find("g").find("text").text
    assert wide.endswith("…") and len(wide) <= 10
    capitals = drawn(blocks("SUMMARISE_IT_ALL")).find("g").find("text").text
    assert capitals.endswith("…") and len(capitals) <= 13


def test_a_definition_gives_its_blocks_loops_routes_and_error_ways():
    definition = compile_document(
        """
version: "1.0"
souls: {s: {role: R, system_prompt: P, provider: demo, model_name: demo-small}}
blocks:
  outline: {type: llm, soul_ref: s, prompt: Go, error_route: sorry}
  draft: {type: llm, soul_ref: s, prompt: Go}
  review: {type: gate, eval_key: blocks.draft.output, soul_ref: s}
  refine: {type: loop, depends: outline, inner_block_refs: [draft, review], break_on_exit: pass}
  decide: {type: gate, depends: refine, eval_key: blocks.outline.output, soul_ref: s, pass: publish, fail: sorry}
  publish: {type: code, code: "def main(data): return 1"}
  sorry: {type: code, code: "def main(data): return 0"}
"""
    )
    nodes, edges = definition_graph(definition, lambda node: replace(node, status="pending"))
    assert {node.id: node.parent for node in nodes if node.parent} == {"draft": "refine", "review": "refine"}
    assert {node.status for node in nodes} == {"pending"}
    assert set(edges) >= {
        GraphEdge("outline", "refine"),
        GraphEdge("outline", "sorry", "on error", "error"),
        GraphEdge("decide", "publish", "pass", "route"),
        GraphEdge("decide", "sorry", "fail", "route"),
    }


def test_some_blocks_are_drawn_alone_where_they_stand_in_the_whole():
    nodes = [GraphNode(name, "code", status="completed") for name in "abc"]
    picture = layout(nodes, chain("a", "b", "c"))
    whole, part = str(graph_svg(picture)), str(graph_svg(picture, only={"c"}))
    assert re.findall(r' id="([\w-]+)"', part) == ["way-1", "graph-c"]
    for name in ("way-1", "graph-c"):
        (found,) = re.findall(rf'<g[^>]*id="{name}".*?</g>', part)
        assert found in whole


def test_the_ways_that_a_run_did_not_go_are_marked():
    nodes = [
        GraphNode(name, "code", status=status)
        for name, status in (("a", "completed"), ("b", "skipped"), ("c", "completed"))
    ]
    drawn = graph_svg(
        layout(nodes, [GraphEdge("a", "b", "urgent", "route"), GraphEdge("a", "c", "normal", "route")])
    )
    ways = re.findall(r'class="(graph__edge[^"]*)" id="(way-\d+)"', drawn)
    assert sorted(ways) == [
        ("graph__edge graph__edge--route", "way-1"),
        ("graph__edge graph__edge--route graph__edge--not", "way-0"),
    ]
    assert "data-fresh" not in graph_svg(layout(blocks("a", "b"), chain("a", "b")))
