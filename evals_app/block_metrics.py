"""The metrics that a block has, in the order in which every list shows them, and where its rows keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows_app.display import formats

PASS_RATE = "pass_rate"  # noqa: S105 - a metric
# The attribute of an observation for each of the metrics that `formats.METRICS` describes.
COLUMNS = {
    "score": "score",
    PASS_RATE: "passed",
    "cost": "cost_usd",
    "latency": "latency_ms",
    "tokens": "tokens",
}
# Those that a single run has a number of; a rate needs several runs.
MEASURED = tuple(name for name in COLUMNS if name != PASS_RATE)
# Those that add up over the blocks of a run, start at zero, and are compared in percent.
AMOUNTS = tuple(name for name in MEASURED if formats.METRICS[name].better == "lower")

Values = Mapping[str, float | None]


def change_metric_of(metric: str) -> str:
    """The name under which `formats.change` knows a change of the metric: amounts change in percent."""
    return f"{metric}_pct" if metric in AMOUNTS else metric


def change_of(metric: str, before: float | None, after: float | None) -> float | None:
    """How a metric changed; differences below display precision are not changes."""
    if before is None or after is None:
        return None
    if formats.reads_alike(before, after, metric):
        return 0.0
    if metric not in AMOUNTS:
        return after - before
    return (after / before - 1) * 100 if before else None


def observed_values(observation: Any) -> Values:
    """The numbers of an observation by metric."""
    return {name: getattr(observation, COLUMNS[name]) for name in MEASURED}


def node_values(node: Any) -> Values:
    """The numbers of a run node by metric."""
    return {
        "score": node.eval_score,
        "cost": node.cost_usd,
        "latency": node.latency_ms,
        "tokens": node.total_tokens,
    }
