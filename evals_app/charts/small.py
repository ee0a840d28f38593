"""Small charts that stand in a row of text: a sparkline, a strip of cases."""

from collections.abc import Sequence
from itertools import groupby

from django.utils.safestring import SafeString

from evals_app.charts.scale import finite, value_axis
from workflows_app.display import formats
from workflows_app.display.svg import element, number

MOST_CELLS = 160
STRIP_HEIGHT, CELL, GAP = 20, 7, 2
# How far down the middle of a bar is; graphics.css says how thick it is.
LINES = {"passed": (14,), "failed": (10,), "error": (4.25, 15.75)}


def sparkline(
    values: Sequence[float | None],
    *,
    metric: str = "score",
    width: int = 112,
    height: int = 32,
    title: str = "",
    tone: str = "accent",
) -> SafeString:
    """The recent shape of a number; the last value has a dot."""
    known = [(i, v) for i, value in enumerate(values) if (v := finite(value)) is not None]
    if not known:
        return _small("sparkline", width, height, title or "No data yet", _dashes(width, height / 2))
    first, last = formats.metric(known[0][1], metric), formats.metric(known[-1][1], metric)
    # As a chart has it: what is perfect is on top in every row.
    axis = value_axis((v for _, v in known), metric)
    pad = 4.0
    step = (width - 2 * pad) / max(len(values) - 1, 1)

    def place(index: int, value: float) -> tuple[float, float]:
        return pad + index * step, height - pad - axis.place(value) * (height - 2 * pad)

    # Straight across what is missing: an hour without a run is no reason to show a lone dot.
    points = [place(i, v) for i, v in known]
    along = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    (start_x, _), (end_x, end_y) = points[0], points[-1]
    alone = [_dashes(width, end_y)] if len(points) == 1 else []  # one value has no shape yet
    return _small(
        f"sparkline sparkline--{tone}",
        width,
        height,
        title or f"from {first} to {last}",
        *alone,
        element(
            "path",
            d=f"M{number(start_x)} {height}L{along}L{number(end_x)} {height}z",
            class_="sparkline__fill",
        ),
        element("path", d=f"M{along}", class_="sparkline__line"),
        element("circle", cx=end_x, cy=end_y, r=2.5, class_="sparkline__end"),
    )


def _dashes(width: float, y: float) -> SafeString:
    return element("line", x1=2, x2=width - 2, y1=y, y2=y, class_="sparkline__none")


def _small(css: str, width: float, height: float, label: str, *inside: SafeString) -> SafeString:
    return element(
        "svg",
        element("title", label),
        *inside,
        class_=css,
        role="img",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
    )


def strip(cases: Sequence[str | bool | None], *, title: str = "") -> SafeString:
    """One bar per case, newest last: what passed is low, what failed is tall, an error has a gap in it."""
    words = [formats.verdict_word(case) for case in cases]
    size = max(1, -(-len(words) // MOST_CELLS))
    # The worst of a group stands for it: a strip that hides a failure is worse than none.
    order = ("failed", "error", "passed", "none")
    cells = [
        min(words[i : i + size], key=lambda w: order.index(w) if w in order else 3)
        for i in range(0, len(words), size)
    ] or ["none"]
    passed = words.count("passed")
    label = title or (f"{passed:,} of {len(words):,} passed" if words else "No cases yet")
    # Neighbours alike are one line, which the stylesheet dashes into bars: a page may show dozens of strips.
    drawn: dict[str, str] = {}
    for word, alike in groupby(range(len(cells)), key=cells.__getitem__):
        places = list(alike)
        for middle in LINES.get(word, LINES["passed"]):
            line = f"M{places[0] * CELL} {number(middle)}h{len(places) * CELL - GAP}"
            drawn[word] = drawn.get(word, "") + line
    paths = [element("path", d=d, class_=f"mark mark--{word}") for word, d in drawn.items()]
    return _small("strip", len(cells) * CELL, STRIP_HEIGHT, label, *paths)
