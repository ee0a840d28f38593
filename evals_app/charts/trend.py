"""A metric over runs: points by verdict, the baseline with its interval, versions and regressions marked."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from django.utils.safestring import SafeString

from evals_app.charts.bins import Bin, TrendPoint, bins
from evals_app.charts.scale import Axis, finite, tick_label, value_axis
from workflows_app.display import formats
from workflows_app.display.svg import element, number

LABELS_ABOVE, BOTTOM = 26, 24  # room for version labels above and run labels below
WIDE = 1000  # of the stretched drawing inside; marks and text keep their size
MARK_ROOM = 9  # pixels a mark needs
MOST_CHANGES = 40  # versions that each can be pointed at; of more, those that have room for a label
LABEL_ROOM = 46  # pixels a version label needs
NO_RUNS = "No completed runs to draw."
SHAPES = {"failed": "M0-5 5 0 0 5-5 0z", "error": "M0-5 5 4h-10z"}
FLAG = "M0 0h9l-2.5 3.5L9 7H0z"
NARROW_LABEL = 16  # characters of a run label, of which three fit at a phone's width


@dataclass(frozen=True)
class BaselineBand:
    """What is normal: the mean, and the interval around it from twenty runs on."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class VersionMark:
    """A version change before the run at this index."""

    index: int
    label: str
    href: str | None = None


@dataclass(frozen=True)
class RegressionMark:
    """A lasting change for the worse, from the run at this index until another, or until now."""

    index: int
    label: str
    href: str | None = None
    until: int | None = None


@dataclass(frozen=True)
class _Frame:
    """Pixels down, percent across: the chart takes any width and its text never scales."""

    axis: Axis
    count: int
    width: int
    height: int
    top: int

    def across(self, index: float) -> float:
        return min(max(index / max(self.count, 1), 0.0), 1.0) * 100

    def x(self, index: float) -> str:
        return f"{number(self.across(index))}%"

    def y(self, value: float) -> float:
        inner = self.height - self.top - BOTTOM
        return round(self.top + (1 - self.axis.place(value)) * inner, 1)

    @property
    def floor(self) -> float:
        return float(self.height - BOTTOM)


def trend_chart(
    points: Sequence[TrendPoint],
    *,
    baseline: BaselineBand | None = None,
    versions: Sequence[VersionMark] = (),
    regressions: Sequence[RegressionMark] = (),
    metric: str = "score",
    width: int = 960,
    height: int = 240,
    title: str = "",
) -> SafeString:
    """A figure with the chart; `width` is about how wide it will be shown, which decides how many points fit."""
    groups = bins(points, width // MARK_ROOM)
    values = [v for group in groups for v in group.known]
    title = title or f"{metric.replace('_', ' ').capitalize()} per run"
    if not values and not any(group.bad for group in groups):
        what = f"No {metric.replace('_', ' ')} to draw: these runs have none." if points else NO_RUNS
        return _figure(metric, title, height, element("p", what, class_="chart__empty"))
    band = astuple(baseline) if baseline else ()
    axis = value_axis([*values, *(v for value in band if (v := finite(value)) is not None)], metric)
    frame = _Frame(axis, len(points), width, height, LABELS_ABOVE if versions or regressions else 10)
    drawing = element(
        "svg",
        element("title", title),
        element("desc", _summary(groups, values, baseline, metric)),
        *_regions(frame, regressions),
        *_grid(frame, metric),
        *_baseline(frame, baseline),
        *_run_labels(frame, points),
        *_versions(frame, versions),
        _line(frame, groups),
        *(_mark(frame, group, metric) for group in groups),
        *_flags(frame, regressions),
        class_="chart__plot",
        role="group",
        width="100%",
        height=height,
    )
    return _figure(metric, title, height, drawing)


def _figure(metric: str, title: str, height: int, *children: SafeString) -> SafeString:
    return element(
        "div",
        *children,
        class_="chart",
        data_chart="trend",
        data_metric=metric,
        data_title=title,
        data_height=height,
    )


def _summary(groups: list[Bin], values: list[float], baseline: BaselineBand | None, metric: str) -> str:
    runs = sum(len(group.points) for group in groups)
    bad = sum(group.bad for group in groups)
    words = [f"{runs:,} run{'' if runs == 1 else 's'}, {bad:,} not passed"]
    if values:
        words.append(f"from {formats.metric(min(values), metric)} to {formats.metric(max(values), metric)}")
    if baseline is not None:
        words.append(f"typically {formats.metric(baseline.mean, metric)}")
    return ", ".join(words) + "."


def _grid(frame: _Frame, metric: str) -> Iterator[SafeString]:
    for tick in frame.axis.ticks():
        y = frame.y(tick)
        yield element("line", x1=0, x2="100%", y1=y, y2=y, class_="chart__grid")
        label = tick_label(tick, frame.axis.step, metric)
        yield element("text", label, x=-10, y=y + 4, class_="chart__tick chart__tick--y")


def _run_labels(frame: _Frame, points: Sequence[TrendPoint]) -> Iterator[SafeString]:
    last = len(points) - 1
    for index in sorted({0, last // 2, last} if last > 3 else {0, last}):
        point = points[index]
        label = " · ".join(part for part in (point.label, f"{point.at:%d %b}" if point.at else "") if part)
        anchor, x, css = "middle", frame.x(index + 0.5), "chart__tick"
        if last and index in (0, last):
            anchor, x = ("start", "0%") if index == 0 else ("end", "100%")
        elif len(label) > NARROW_LABEL:
            css = "chart__tick chart__tick--wide"
        yield element("text", label, x=x, y=frame.height - 6, text_anchor=anchor, class_=css)


def _baseline(frame: _Frame, baseline: BaselineBand | None) -> list[SafeString]:
    mean, low, high = map(finite, astuple(baseline)) if baseline else (None, None, None)
    if mean is None:
        return []
    y = frame.y(mean)
    line = element("line", x1=0, x2="100%", y1=y, y2=y, class_="chart__typical")
    if low is None or high is None:
        return [line]
    top = frame.y(high)
    tall = max(frame.y(low) - top, 1.0)
    return [element("rect", x=0, y=top, width="100%", height=tall, class_="chart__band"), line]


def _versions(frame: _Frame, versions: Sequence[VersionMark]) -> list[SafeString]:
    """Every change has its line; a label only where there is room for it."""
    marks = sorted((mark for mark in versions if 0 <= mark.index < frame.count), key=lambda m: m.index)
    parts, crowded = [], []
    room_from = -1.0
    for mark in marks:
        pixels = frame.across(mark.index) / 100 * frame.width
        has_label = pixels >= room_from
        if has_label:
            room_from = pixels + LABEL_ROOM
        if has_label or len(marks) <= MOST_CHANGES:
            parts.append(_change(frame, mark, pixels if has_label else None))
        else:
            x = number(frame.across(mark.index) / 100 * WIDE)
            crowded.append(f"M{x} {frame.top - 8}V{number(frame.floor)}")
    return [*([_stretched(frame, ("chart__crowd", crowded))] if crowded else ()), *parts]


def _change(frame: _Frame, mark: VersionMark, label_at: float | None) -> SafeString:
    x = frame.x(mark.index)
    inside: list[object] = [
        element("title", f"Version change: {mark.label}"),
        element("line", x1=x, x2=x, y1=frame.top - 8, y2=frame.floor),
    ]
    if label_at is not None:
        anchor = "end" if label_at > frame.width - LABEL_ROOM else "start"
        label = element("text", mark.label, x=x, y=12, text_anchor=anchor, class_="chart__version-label")
        inside.append(label)
    return _link(mark.href, "chart__change", *inside)


def _stretched(frame: _Frame, *paths: tuple[str, list[str]]) -> SafeString:
    """Paths in a drawing that takes the width there is."""
    return element(
        "svg",
        *(element("path", d="".join(path), class_=css) for css, path in paths if path),
        width="100%",
        height=frame.height,
        viewBox=f"0 0 {WIDE} {frame.height}",
        preserveAspectRatio="none",
    )


def _link(href: str | None, css: str, *inside: object) -> SafeString:
    return element("a", *inside, href=href, class_=css) if href else element("g", *inside, class_=css)


def _regions(frame: _Frame, regressions: Sequence[RegressionMark]) -> Iterator[SafeString]:
    for mark in regressions:
        end = frame.across(frame.count if mark.until is None else mark.until)
        width = f"{number(max(end - frame.across(mark.index), 0))}%"
        x, tall = frame.x(mark.index), frame.floor - frame.top
        yield element("rect", x=x, y=frame.top, width=width, height=tall, class_="chart__worse")


def _flags(frame: _Frame, regressions: Sequence[RegressionMark]) -> Iterator[SafeString]:
    for mark in regressions:
        x = frame.x(mark.index)
        flag = element("svg", element("path", d=FLAG, class_="chart__flag"), x=x, y=frame.top)
        pole = element("line", x1=x, x2=x, y1=frame.top, y2=frame.floor, class_="chart__pole")
        yield _link(mark.href, "chart__regression", element("title", mark.label), pole, flag)


def _line(frame: _Frame, groups: list[Bin]) -> SafeString:
    """The path through the means, broken where a value is missing, and the spread of what was put together."""
    path, spread = [], []
    is_down = False
    for group in groups:
        if group.mean is None:
            is_down = False
            continue
        x = number(frame.across(group.middle) / 100 * WIDE)
        path.append(f"{'L' if is_down else 'M'}{x} {number(frame.y(group.mean))}")
        is_down = True
        top, bottom = frame.y(max(group.known)), frame.y(min(group.known))
        if top != bottom:
            spread.append(f"M{x} {number(top)}V{number(bottom)}")
    return _stretched(frame, ("chart__range", spread), ("chart__line", path))


def _mark(frame: _Frame, group: Bin, metric: str) -> SafeString:
    """The mark of a bin; chart.js makes the last the only tab stop and moves between them by arrow keys."""
    x, verdict = frame.x(group.middle), group.verdict
    y = frame.floor if group.mean is None else frame.y(group.mean)
    parts = [element("title", group.describe(metric))]
    if verdict in SHAPES:
        parts.append(element("svg", element("path", d=SHAPES[verdict]), x=x, y=y))
    else:  # a run without a value is a small ring on the axis
        parts.append(element("circle", cx=x, cy=y, r=2.5 if group.mean is None else None))
    css = f"mark mark--{'none' if group.mean is None and verdict == 'passed' else verdict}"
    return _link(group.href, css, *parts)
