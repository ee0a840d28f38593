"""Charts drawn by the server: SVG with CSS classes for colours, readable without a script."""

from evals_app.charts.bins import TrendPoint
from evals_app.charts.histogram import histogram
from evals_app.charts.small import sparkline, strip
from evals_app.charts.trend import BaselineBand, RegressionMark, VersionMark, trend_chart

__all__ = [
    "BaselineBand",
    "RegressionMark",
    "TrendPoint",
    "VersionMark",
    "histogram",
    "sparkline",
    "strip",
    "trend_chart",
]
