"""A trend as a chart: what `trends.trend` found, with links to runs and versions, relative to the workflow's page."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString
from django.utils.text import Truncator

from evals_app import charts, trends
from evals_app.models import RegressionState
from evals_app.regressions import KIND_WORDS, kinds_of
from workflows_app.models import Workflow

# Beyond this a chart shows the newest: drawing costs the same with a thousand runs and a million.
MOST_RUNS = 1_500
DEFAULT_RANGE = "200"
RANGES = {
    "50": "50 runs",
    "200": "200 runs",
    "1000": "1,000 runs",
    "24h": "24 h",
    "7d": "7 d",
    "30d": "30 d",
    "all": "All",
}
METRIC_NAMES = {
    "score": "Score",
    "pass_rate": "Pass rate",
    "cost": "Cost",
    "latency": "Latency",
    "tokens": "Tokens",
}
MOST_TOLD = 6  # by one flag
LONGEST_NAME = 40


@dataclass(frozen=True)
class Picture:
    """A chart, how many runs it draws, the number of its dashed line, and whether there is a band around it."""

    chart: SafeString
    runs: int
    usual: float | None
    has_band: bool


def metric_name(metric: str) -> str:
    """A metric as a heading or a button says it."""
    return METRIC_NAMES.get(metric) or metric[:1].upper() + metric[1:]


def title_of(metric: str) -> str:
    """What a chart of the metric draws."""
    if metric == trends.PASS_RATE:
        return f"Pass rate of the last {trends.RATE_WINDOW} runs"
    return f"{metric_name(metric)} per run"


def trend_picture(
    workflow: Workflow, block: str, metric: str, range: str, *, width: int = 800, height: int = 260
) -> Picture:
    """The chart of one block, or of the whole workflow without one."""
    found = trends.trend(workflow, block, metric, range, most_runs=MOST_RUNS)
    points = found["points"]
    baseline = _band(found["baseline"])
    chart = charts.trend_chart(
        [_point(point) for point in points],
        baseline=baseline,
        versions=_versions(points),
        regressions=_regressions(points, found["regressions"], metric, workflow),
        metric=metric,
        width=width,
        height=height,
        title=f"{title_of(metric)} of {block or workflow.slug}",
    )
    return Picture(
        chart,
        len(points),
        baseline.mean if baseline else None,
        has_band=baseline is not None and baseline.low is not None,
    )


def _point(point: Mapping[str, Any]) -> charts.TrendPoint:
    return charts.TrendPoint(
        point["value"],
        point["passed"],
        f"#{point['number']}",
        # By its number: a hundred ids are heavy.
        f"runs/{point['number']}/" if point["run"] else None,
        datetime.fromisoformat(point["at"]),
        f"v{point['version']}",
    )


def _band(baseline: Mapping[str, Any] | None) -> charts.BaselineBand | None:
    if baseline is None:
        return None
    return charts.BaselineBand(baseline["mean"], baseline["low"], baseline["high"], baseline["count"])


def _versions(points: Sequence[Mapping[str, Any]]) -> list[charts.VersionMark]:
    """A mark wherever the version changes; the first is where the chart begins and says nothing."""
    marks = []
    for index, (before, point) in enumerate(itertools.pairwise(points), start=1):
        if point["version"] != before["version"]:
            number = point["version"]
            marks.append(charts.VersionMark(index, f"v{number}", f"versions/{number}/"))
    return marks


def _regressions(
    points: Sequence[Mapping[str, Any]],
    regressions: Sequence[Mapping[str, Any]],
    metric: str,
    workflow: Workflow,
) -> list[charts.RegressionMark]:
    """One flag a place, which tells of all that began there; open while one of them is."""
    numbers = [point["number"] for point in points]
    wanted = kinds_of(metric)
    places: dict[int, list[Mapping[str, Any]]] = {}
    for one in regressions:
        began = one["since_run"]
        if one["kind"] not in wanted or began is None or not numbers or began < numbers[0]:
            continue
        index = bisect_left(numbers, began)
        if index < len(numbers):
            places.setdefault(index, []).append(one)
    href = f"{workflow.get_absolute_url()}#regressions"
    return [
        charts.RegressionMark(
            index, _told(begun), href, until=index if all(_is_over(one) for one in begun) else None
        )
        for index, begun in places.items()
    ]


def _is_over(regression: Mapping[str, Any]) -> bool:
    return bool(regression["state"] == RegressionState.RESOLVED)


def _told(regressions: Sequence[Mapping[str, Any]]) -> str:
    """What began at a place, in a line: what is still open first."""
    ordered = sorted(regressions, key=_is_over)
    told = [
        f"{KIND_WORDS[one['kind']]} of {Truncator(one['node_id']).chars(LONGEST_NAME)} since #{one['since_run']}"
        + (", resolved" if _is_over(one) else "")
        for one in ordered[:MOST_TOLD]
    ]
    more = len(ordered) - MOST_TOLD
    return "; ".join([*told, *([f"and {more} more"] if more > 0 else [])])
