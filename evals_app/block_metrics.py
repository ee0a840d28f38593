"""The metrics of a block, in the order in which every list shows them: their names, labels and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workflows_app.display import formats


class Metric(NamedTuple):
    """What people call a metric, and the attribute that an observation keeps it in."""

    label: str
    column: str


PASS_RATE = "pass_rate"  # noqa: S105 - a metric
METRICS = {
    "score": Metric("Score", "score"),
    PASS_RATE: Metric("Pass rate", "passed"),
    "cost": Metric("Cost", "cost_usd"),
    "latency": Metric("Latency", "latency_ms"),
    "tokens": Metric("Tokens", "tokens"),
}
# Those that a single run has a number of; a rate needs several runs.
MEASURED = tuple(name for name in METRICS if name != PASS_RATE)
# Those that add up over the blocks of a run, start at zero, and are compared in percent.
AMOUNTS = tuple(name for name in MEASURED if name in formats.LOWER_IS_BETTER)

Values = Mapping[str, float | None]


def label_of(metric: str) -> str:
    """A metric as a heading or a button shows it; one named in an assertion has its own name."""
    return METRICS[metric].label if metric in METRICS else metric[:1].upper() + metric[1:]


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
    return {name: getattr(observation, METRICS[name].column) for name in MEASURED}


def node_values(node: Any) -> Values:
    """The numbers of a run node by metric."""
    return {
        "score": node.eval_score,
        "cost": node.cost_usd,
        "latency": node.latency_ms,
        "tokens": node.total_tokens,
    }
