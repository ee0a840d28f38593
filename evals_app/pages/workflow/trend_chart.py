"""A trend as a chart, with links to runs and versions, relative to the workflow's page."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from django.utils.text import Truncator

from evals_app import charts
from evals_app.block_metrics import PASS_RATE
from evals_app.models import Regression, RegressionState
from evals_app.monitoring import trends
from evals_app.monitoring.regressions import KIND_WORDS, kinds_of
from workflows_app.display import formats
from workflows_app.models import Workflow

# Beyond this a chart shows the newest: drawing costs the same with a thousand runs and a million.
MOST_RUNS = 1_500
DEFAULT_RANGE = "200"
RANGES = {
    "50": "50 runs",
    "200": "200 runs",
    "1000": "1,000 runs",
    "24h": "24h",
    "7d": "7d",
    "30d": "30d",
    "all": "All",
}
MOST_NAMED = 6  # by one flag
LONGEST_NAME = 40


def title_of(metric: str) -> str:
    """What a chart of the metric draws."""
    if metric == PASS_RATE:
        return f"Pass rate of the last {trends.RATE_WINDOW} runs"
    return f"{formats.metric_named(metric).label} per run"


def trend_picture(
    workflow: Workflow, block: str, metric: str, range: str, *, width: int = 800, height: int = 260
) -> dict[str, Any]:
    """The chart of one block, or of the whole workflow without one, and what its legend says."""
    found = trends.trend(workflow, block, metric, range, most_runs=MOST_RUNS)
    level = found.baseline
    band = charts.BaselineBand(level["mean"], level["low"], level["high"]) if level else None
    chart = charts.trend_chart(
        [_point(point) for point in found.points],
        baseline=band,
        versions=_versions(found.points),
        regressions=regression_marks(found, workflow),
        metric=metric,
        width=width,
        height=height,
        title=f"{title_of(metric)} of {block or workflow.slug}",
    )
    return {
        "chart": chart,
        "typical": band.mean if band else None,
        "has_band": band is not None and band.low is not None,
    }


def _point(point: trends.Point) -> charts.TrendPoint:
    # A link by the run's number is much shorter than one by its id.
    href = f"runs/{point.number}/" if point.run else None
    return charts.TrendPoint(
        point.value, point.passed, f"#{point.number}", href, point.at, f"v{point.version}"
    )


def _versions(points: Sequence[trends.Point]) -> list[charts.VersionMark]:
    """A mark wherever the version changes; the chart's first version has none."""
    return [
        charts.VersionMark(index, f"v{point.version}", f"versions/{point.version}/")
        for index, (before, point) in enumerate(itertools.pairwise(points), start=1)
        if point.version != before.version
    ]


def regression_marks(trend: trends.Trend, workflow: Workflow) -> list[charts.RegressionMark]:
    """One flag per place, for all regressions that began there; open while one of them is."""
    numbers = [point.number for point in trend.points]
    wanted = kinds_of(trend.metric)
    places: dict[int, list[Regression]] = {}
    for regression in trend.regressions:
        began = regression.since_run_number
        if regression.kind in wanted and began is not None and numbers and numbers[0] <= began <= numbers[-1]:
            places.setdefault(bisect_left(numbers, began), []).append(regression)
    href = f"{workflow.get_absolute_url()}#regressions"
    return [
        charts.RegressionMark(
            index, _description(begun), href, until=index if all(map(_is_over, begun)) else None
        )
        for index, begun in places.items()
    ]


def _is_over(regression: Regression) -> bool:
    return regression.state == RegressionState.RESOLVED


def _description(regressions: Sequence[Regression]) -> str:
    """What began at a place, in a line: what is still open first."""
    ordered = sorted(regressions, key=_is_over)
    parts = [
        f"{KIND_WORDS[one.kind]} of {Truncator(one.node_id).chars(LONGEST_NAME)} since #{one.since_run_number}"
        + (", resolved" if _is_over(one) else "")
        for one in ordered[:MOST_NAMED]
    ]
    more = len(ordered) - MOST_NAMED
    return "; ".join([*parts, *([f"and {more} more"] if more > 0 else [])])
