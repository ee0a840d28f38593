"""How a measured value is spread, with the threshold on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evals_app.charts.scale import finite, round_step, tick_label
from workflows_app.svg import element, number

ROOM_ABOVE, ROOM_BELOW = 20, 22


@dataclass(frozen=True)
class _Column:
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class _Limits:
    """What passes: above or below one line, between two, or outside them."""

    threshold: float | None
    upper: float | None
    passes_above: bool

    @property
    def lines(self) -> list[float]:
        return sorted({line for line in (self.threshold, self.upper) if line is not None})

    def passes(self, value: float) -> bool:
        """Whether a measured value is on the passing side; one on the line is."""
        if self.upper is not None and self.threshold is not None:
            return (self.threshold <= value <= self.upper) == self.passes_above
        line = self.lines[0]
        return value >= line if self.passes_above else value <= line

    def side(self, column: _Column) -> str:
        """The verdict a column is drawn with: that of its middle, or of a line inside it that alone passes."""
        if not self.lines:
            return "none"
        if self.threshold == self.upper and column.low <= self.lines[0] < column.high:
            return "passed" if self.passes_above else "failed"
        return "passed" if self.passes((column.low + column.high) / 2) else "failed"


def histogram(
    values: Sequence[float | None],
    threshold: float | None = None,
    *,
    upper: float | None = None,
    metric: str = "score",
    passes_above: bool = True,
    parts: int = 30,
    height: int = 150,
    title: str = "",
) -> SafeString:
    """Columns of values; those on the threshold's failing side are marked, and the threshold is a line.

    With `upper`, what lies between the two passes, or what lies outside if `passes_above` is False.
    """
    known = [v for value in values if (v := finite(value)) is not None]
    limits = _Limits(finite(threshold), finite(upper), passes_above)
    if not known:
        empty = element("p", "No measured values yet.", class_="chart__empty")
        return element("div", empty, class_="chart chart--histogram")
    columns = _columns(known, limits.lines, parts)
    low, high = columns[0].low, columns[-1].high
    label = title or _label(known, limits, metric)
    floor = height - ROOM_BELOW
    tallest = max(column.count for column in columns)
    bars = []
    for index, column in enumerate(columns):
        if column.count:
            tall = max(column.count / tallest * (floor - ROOM_ABOVE), 2.0)
            bars.append(_bar(index, len(columns), column, floor, tall, limits.side(column), metric))
    drawing = element(
        "svg",
        element("title", label),
        element("line", x1=0, x2="100%", y1=floor, y2=floor, class_="chart__grid"),
        *bars,
        *(part for line in limits.lines for part in _threshold(line, low, high, floor, metric)),
        element(
            "text",
            _tick(low, high - low, metric),
            x="0%",
            y=height - 5,
            text_anchor="start",
            class_="chart__tick",
        ),
        element(
            "text",
            _tick(high, high - low, metric),
            x="100%",
            y=height - 5,
            text_anchor="end",
            class_="chart__tick",
        ),
        class_="chart__plot",
        role="img",
        aria_label=label,
        width="100%",
        height=height,
    )
    return element("div", drawing, class_="chart chart--histogram")


def _columns(known: list[float], lines: list[float], parts: int) -> list[_Column]:
    """Columns of equal width over the values and the thresholds."""
    ends = [*known, *lines]
    low, high = min(ends), max(ends)
    step = ((high - low) or abs(low) or 1.0) / parts
    counts = [0] * parts
    for value in known:
        counts[min(int((value - low) / step), parts - 1)] += 1
    return [_Column(low + step * i, low + step * (i + 1), count) for i, count in enumerate(counts)]


def _tick(value: float, span: float, metric: str) -> str:
    label = tick_label(value, round_step(span, 100), metric)
    # A threshold of 0.8 reads as it was written.
    return label.rstrip("0").rstrip(".") if "." in label and label[-1].isdigit() else label


def _bar(
    index: int, parts: int, column: _Column, floor: float, tall: float, side: str, metric: str
) -> SafeString:
    span = column.high - column.low
    words = f"{_tick(column.low, span, metric)} to {_tick(column.high, span, metric)}: {column.count:,}"
    return element(
        "rect",
        element("title", words),
        x=f"{number(index / parts * 100)}%",
        y=floor - tall,
        width=f"{number(92 / parts)}%",
        height=tall,
        rx=2,
        class_=f"mark mark--{side}",
    )


def _threshold(limit: float, low: float, high: float, floor: float, metric: str) -> list[SafeString]:
    across = (limit - low) / (high - low) * 100
    x = f"{number(across)}%"
    anchor = "end" if across > 70 else "start"
    words = f"threshold {_tick(limit, high - low, metric)}"
    return [
        element("line", x1=x, x2=x, y1=4, y2=floor, class_="chart__threshold"),
        element(
            "text",
            words,
            x=x,
            y=12,
            dx=-5 if anchor == "end" else 5,
            text_anchor=anchor,
            class_="chart__note",
        ),
    ]


def _label(known: list[float], limits: _Limits, metric: str) -> str:
    span = (max(known) - min(known)) or 1.0
    words = (
        f"{len(known):,} values from {_tick(min(known), span, metric)} to {_tick(max(known), span, metric)}"
    )
    if not limits.lines:
        return words
    passing = sum(map(limits.passes, known))
    ends = " and ".join(_tick(line, span, metric) for line in limits.lines)
    return f"{words}; {passing:,} on the passing side of {ends}"
