"""How a measured value is spread, with the ends of what passes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evals_app.assertions import PassingRange
from evals_app.charts.scale import finite, round_step, tick_label
from workflows_app.display.svg import element, number

COLUMNS = 30
HEIGHT, ROOM_ABOVE, ROOM_BELOW = 150, 20, 22


@dataclass(frozen=True)
class _Column:
    low: float
    high: float
    count: int


def histogram(
    values: Sequence[float | None], passing: PassingRange | None = None, *, metric: str = "score"
) -> SafeString:
    """Columns of values; those that do not pass are marked, and each end of what passes is a line."""
    known = [v for value in values if (v := finite(value)) is not None]
    if not known:
        empty = element("p", "No measured values yet.", class_="chart__empty")
        return element("div", empty, class_="chart chart--histogram")
    ends = (passing.low, passing.high) if passing else ()
    lines = sorted({v for end in ends if (v := finite(end)) is not None})
    columns = _columns(known, lines)
    low, high = columns[0].low, columns[-1].high
    label = _label(known, lines, passing, metric)
    floor = HEIGHT - ROOM_BELOW
    ticks = [
        element(
            "text",
            _tick(value, high - low, metric),
            x=x,
            y=HEIGHT - 5,
            text_anchor=anchor,
            class_="chart__tick",
        )
        for value, x, anchor in ((low, "0%", "start"), (high, "100%", "end"))
    ]
    drawing = element(
        "svg",
        element("title", label),
        element("line", x1=0, x2="100%", y1=floor, y2=floor, class_="chart__grid"),
        *_bars(columns, passing, floor, metric),
        *(part for line in lines for part in _threshold(line, low, high, floor, metric)),
        *ticks,
        class_="chart__plot",
        role="img",
        aria_label=label,
        width="100%",
        height=HEIGHT,
    )
    return element("div", drawing, class_="chart chart--histogram")


def _passes(value: float, passing: PassingRange) -> bool:
    is_above = passing.low is None or value >= passing.low
    is_below = passing.high is None or value <= passing.high
    return (is_above and is_below) != passing.negated


def _side(column: _Column, passing: PassingRange | None) -> str:
    """The verdict a column is drawn with: that of its middle, or of the one value inside it that alone passes."""
    if passing is None:
        return "none"
    value = (column.low + column.high) / 2
    if passing.low is not None and passing.low == passing.high and column.low <= passing.low < column.high:
        value = passing.low
    return "passed" if _passes(value, passing) else "failed"


def _columns(known: list[float], lines: list[float]) -> list[_Column]:
    """Columns of equal width over the values and the thresholds."""
    ends = [*known, *lines]
    low, high = min(ends), max(ends)
    step = ((high - low) or abs(low) or 1.0) / COLUMNS
    counts = [0] * COLUMNS
    for value in known:
        counts[min(int((value - low) / step), COLUMNS - 1)] += 1
    return [_Column(low + step * i, low + step * (i + 1), count) for i, count in enumerate(counts)]


def _tick(value: float, span: float, metric: str) -> str:
    label = tick_label(value, round_step(span, 100), metric)
    # A threshold of 0.8 reads as it was written.
    return label.rstrip("0").rstrip(".") if "." in label and label[-1].isdigit() else label


def _bars(
    columns: list[_Column], passing: PassingRange | None, floor: float, metric: str
) -> Iterator[SafeString]:
    tallest = max(column.count for column in columns)
    for index, column in enumerate(columns):
        if not column.count:
            continue
        span = column.high - column.low
        ends = f"{_tick(column.low, span, metric)} to {_tick(column.high, span, metric)}"
        tall = max(column.count / tallest * (floor - ROOM_ABOVE), 2.0)
        yield element(
            "rect",
            element("title", f"{ends}: {column.count:,}"),
            x=f"{number(index / len(columns) * 100)}%",
            y=floor - tall,
            width=f"{number(92 / len(columns))}%",
            height=tall,
            rx=2,
            class_=f"mark mark--{_side(column, passing)}",
        )


def _threshold(limit: float, low: float, high: float, floor: float, metric: str) -> list[SafeString]:
    across = (limit - low) / (high - low) * 100
    x = f"{number(across)}%"
    anchor, dx = ("end", -5) if across > 70 else ("start", 5)
    label = f"threshold {_tick(limit, high - low, metric)}"
    return [
        element("line", x1=x, x2=x, y1=4, y2=floor, class_="chart__threshold"),
        element("text", label, x=x, y=12, dx=dx, text_anchor=anchor, class_="chart__note"),
    ]


def _label(known: list[float], lines: list[float], passing: PassingRange | None, metric: str) -> str:
    span = (max(known) - min(known)) or 1.0
    words = (
        f"{len(known):,} values from {_tick(min(known), span, metric)} to {_tick(max(known), span, metric)}"
    )
    if passing is None or not lines:
        return words
    passed = sum(_passes(value, passing) for value in known)
    ends = " and ".join(_tick(line, span, metric) for line in lines)
    return f"{words}; {passed:,} on the passing side of {ends}"
