"""What is normal for a block, and how a node differs from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evals_app.block_metrics import AMOUNTS, MEASURED, Values
from evals_app.evidence.model import Baseline
from evals_app.models import BlockStatistics

# A delta is shown from the second run on, an interval only once there are enough runs for one.
RUNS_FOR_INTERVAL = 20


def baselines_of(workflow_id: int, node_ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """What blocks are compared with, by metric; nothing of a block before its first observation."""
    rows = BlockStatistics.objects.filter(workflow_id=workflow_id, node_id__in=node_ids)
    return {row.node_id: row.compared_with for row in rows.only("node_id", "pinned", "baseline")}


def baseline_of(workflow_id: int, node_id: str) -> Mapping[str, Any] | None:
    """What one block is compared with."""
    return baselines_of(workflow_id, [node_id]).get(node_id)


def as_level(normal: Baseline) -> dict[str, Any]:
    """What is normal, as it is stored and shown: an interval only where enough runs make one."""
    has_interval = normal.count >= RUNS_FOR_INTERVAL
    return {
        "count": normal.count,
        "mean": normal.mean,
        "low": normal.low if has_interval else None,
        "high": normal.high if has_interval else None,
    }


def slice_baseline(totals: Mapping[str, Any]) -> dict[str, Any]:
    """The running totals of a version as a baseline: what was normal under it."""
    found: dict[str, Any] = {}
    for name in MEASURED:
        if name in totals:
            count, mean, m2 = totals[name]
            spread = (m2 / (count - 1)) ** 0.5 if count > 1 else 0.0
            low, high = mean - 1.645 * spread, mean + 1.645 * spread
            found[name] = as_level(Baseline(int(count), mean, spread, low, high))
    return found


def delta_of(values: Values, baseline: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """How a node differs from its baseline; None if there is nothing to compare with."""
    if not baseline:
        return None
    score = baseline.get("score") or dict.fromkeys(("mean", "low", "high"))
    counts = {name: baseline[name]["count"] for name in MEASURED if name in baseline}
    return {
        "score_delta": _difference(values["score"], score["mean"]),
        **{f"{name}_pct": _percent(values[name], baseline.get(name)) for name in AMOUNTS},
        "baseline_score": score["mean"],
        # One that is worse stays with the runs before it was: the others rest on more.
        "baseline_run_count": max(counts.values(), default=0),
        "baseline_counts": counts,
        "low": score["low"],
        "high": score["high"],
    }


def _difference(value: float | None, mean: float | None) -> float | None:
    return None if value is None or mean is None else float(round(value - mean, 6))


def _percent(value: float | None, level: Mapping[str, Any] | None) -> float | None:
    if value is None or level is None or not level["mean"]:
        return None
    return float(round((value / level["mean"] - 1) * 100, 2))
