"""The graph as SVG; colours come from CSS classes, so themes need no new drawing."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence

from django.templatetags.static import static
from django.utils.safestring import SafeString

from workflows_app.display import formats
from workflows_app.display.svg import Value, element, icon, number
from workflows_app.graph.layout import LABEL_WIDTH, GraphNode, Layout, PlacedNode, Point, RoutedEdge

KINDS = frozenset({"llm", "code", "gate", "loop", "workflow", "dispatch"})
MARGIN = 12
MOST_DOTS, DOT_STEP = 8, 9
FITS = 1600  # pixels that a wide screen may shrink to its width and still show legible; wider ones scroll
DIGIT_WIDTH = 9.1  # pixels, in the widest font that a page may get: DejaVu Sans Bold


def graph_svg(
    picture: Layout, *, title: str = "Workflow graph", only: Collection[str] | None = None
) -> SafeString:
    """The drawing of a layout, or only of some blocks with the ways to and from them, as a page takes them over."""
    sprite = static("img/icons.svg")
    if not picture.nodes:
        return element("p", "This workflow has no blocks yet.", class_="graph__empty muted")
    width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    boxes = [box for box in picture.nodes if only is None or box.node.id in only]
    ways = [
        (index, way)
        for index, way in enumerate(picture.edges)
        if only is None or way.edge.source in only or way.edge.target in only
    ]
    count = len(picture.nodes)
    statuses = {box.node.id: box.node.status for box in picture.nodes if box.node.status}
    return element(
        "svg",
        element("title", f"{title}: {count} block{'' if count == 1 else 's'}"),
        *(_group(box, sprite) for box in boxes if box.is_group),
        *(_edge(way, index, statuses) for index, way in ways),
        *(_node(box, sprite) for box in boxes if not box.is_group),
        class_="graph graph--fits" if width <= FITS else "graph",
        role="group",
        width=width,
        height=height,
        viewBox=f"{-MARGIN} {-MARGIN} {number(width)} {number(height)}",
    )


def fit(words: str, space: float) -> str:
    """The text cut to the space, measured in digits: other letters are narrower or wider."""
    if sum(map(_width, words)) <= space:
        return words
    room = space - 1.5  # of the dots
    for index, letter in enumerate(words):
        room -= _width(letter)
        if room < 0:
            return words[: max(index, 1)].rstrip() + "…"
    return words


def _width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    if letter in "mwMW":
        return 1.6
    if letter in "fijlrt-_. ":
        return 0.72
    return 1.22 if letter.isupper() else 1.03


def _label(node: GraphNode, x: float, y: float, room: float) -> SafeString:
    """A block's name, cut to the pixels there are."""
    return element("text", fit(node.label or node.id, room / DIGIT_WIDTH), x=x, y=y, class_="graph__label")


def _link(node: GraphNode, css: str, *children: object) -> SafeString:
    attributes: dict[str, Value] = {"data_node_id": node.id, "data_status": node.status, "class_": css}
    if node.status:  # it belongs to a run, and its page takes over what changes
        attributes |= {"id": f"graph-{node.id}", "data_fresh": True}
    if node.href:
        return element("a", *children, href=node.href, **attributes)
    return element("g", *children, tabindex=0, role="group", **attributes)


def spoken_label(node: GraphNode) -> str:
    """What a screen reader says of a block."""
    words = [node.label or node.id, node.kind]
    if node.status:
        words.append(formats.STATUSES.get(node.status, (node.status,))[0].lower())
    if node.score is not None:
        words.append(f"score {formats.score(node.score)}")
    if node.dots:
        words.append(f"{node.dots.count('passed')} of {len(node.dots)} assertions passed")
    return ", ".join(words)


def _kind_icon(kind: str) -> str:
    return f"kind-{kind if kind in KINDS else 'llm'}"


def _status_icon(node: GraphNode, sprite: str, x: float, y: float) -> SafeString | None:
    return icon(node.status, sprite, x, y, "graph__status") if node.status else None


def _node(box: PlacedNode, sprite: str) -> SafeString:
    node, x, y = box.node, box.x, box.y
    return _link(
        node,
        "graph__node",
        element("title", spoken_label(node)),
        element("rect", x=x, y=y, class_="graph__box"),
        element("rect", x=x + 10, y=y + 14, class_="graph__tile"),
        icon(_kind_icon(node.kind), sprite, x + 18, y + 22, "graph__kind"),
        _label(node, x + 52, y + 26, box.width - 80),
        element("text", node.kind, x=x + 52, y=y + 44, class_="graph__sub"),
        _status_icon(node, sprite, x + box.width - 26, y + 12),
        *_results(node, x + box.width, y),
    )


def worst_first(words: tuple[str, ...], most: int) -> tuple[str, ...]:
    """All in their order, or of too many those that fit: what did not pass comes first and is kept."""
    if len(words) <= most:
        return words
    return tuple(sorted(words, key=lambda word: word == "passed")[:most])


def _results(node: GraphNode, right: float, y: float) -> Iterator[SafeString]:
    """One mark per assertion, and the score."""
    if node.status or node.dots:
        most = min(MOST_DOTS, 13 - len(node.kind))  # they stand beside its name
        shown = worst_first(node.dots, most)
        left = right - 48 - DOT_STEP * len(shown)
        dots = (_dot(word, left + DOT_STEP * index, y + 40) for index, word in enumerate(shown))
        yield element("g", *dots, class_="graph__dots")
    if node.status or node.score is not None:
        score = "" if node.score is None else formats.score(node.score)
        yield element("text", score, x=right - 10, y=y + 44, class_="graph__score")


def _dot(word: str, x: float, y: float) -> SafeString:
    if word == "failed":
        return element(
            "path", d=f"M{number(x)} {number(y - 4.5)}l4.5 4.5l-4.5 4.5l-4.5-4.5z", class_="mark mark--failed"
        )
    if word == "error":
        return element("path", d=f"M{number(x)} {number(y - 4)}l4 7.5h-8z", class_="mark mark--error")
    return element(
        "circle", cx=x, cy=y, r=3.25, class_=f"mark mark--{'passed' if word == 'passed' else 'none'}"
    )


def _group(box: PlacedNode, sprite: str) -> SafeString:
    node, x, y = box.node, box.x, box.y
    return _link(
        node,
        "graph__group",
        element("title", spoken_label(node)),
        element("rect", x=x, y=y, width=box.width, height=box.height, rx=14, class_="graph__frame"),
        icon(_kind_icon(node.kind), sprite, x + 14, y + 12, "graph__kind"),
        _label(node, x + 38, y + 25, box.width - 72),
        _status_icon(node, sprite, x + box.width - 30, y + 12),
    )


def _edge(way: RoutedEdge, index: int, statuses: Mapping[str, str]) -> SafeString:
    """A way from block to block; those that a run did not go are marked."""
    edge = way.edge
    kind = edge.kind if edge.kind in ("route", "error") else "normal"
    css = "graph__edge" if kind == "normal" else f"graph__edge graph__edge--{kind}"
    if "skipped" in (statuses.get(edge.source), statuses.get(edge.target)):
        css += " graph__edge--not"
    line, tip = _curve(way.points), _tip(way.points)
    # Dashes would tear the tip, so there it is drawn by itself.
    parts = [element("path", d=d) for d in ((line, tip) if kind == "error" else (line + tip,))]
    if edge.label:
        parts.append(_edge_label(edge.label, way.points))
    live: dict[str, Value] = {"id": f"way-{index}", "data_fresh": True} if statuses else {}
    return element("g", *parts, class_=css, **live)


def _tip(points: Sequence[Point]) -> str:
    (x, y), (before, _) = points[-1], points[-2]
    back = -6 if x >= before else 6
    return f"M{number(x + back)} {number(y - 4)}L{number(x)} {number(y)}l{back} 4"


def _edge_label(label: str, points: Sequence[Point]) -> SafeString:
    words = fit(label, 18)
    (x1, y1), (x2, y2) = points[0], points[1]
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    width = len(words) * LABEL_WIDTH + 12
    return element(
        "g",
        element("title", label),
        element("rect", x=x - width / 2, y=y - 10, width=width, height=20, rx=6, class_="graph__plate"),
        element("text", words, x=x, y=y + 4, class_="graph__way"),
    )


def _curve(points: Sequence[Point]) -> str:
    x, y = points[0]
    path = [f"M{number(x)} {number(y)}"]
    for next_x, next_y in points[1:]:
        if abs(next_y - y) < 0.5:
            path.append(f"L{number(next_x)} {number(next_y)}")
        else:
            middle = number((x + next_x) / 2)
            path.append(f"C{middle} {number(y)} {middle} {number(next_y)} {number(next_x)} {number(next_y)}")
        x, y = next_x, next_y
    return "".join(path)
