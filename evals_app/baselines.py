"""What is normal for a block, and how a node differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from evals_app.models import BlockStatistics
from workflows_app import rows
from workflows_app.models import RunNode

# DESIGN: a delta from the second run on, an interval only once there is enough to draw one.
RUNS_FOR_INTERVAL = 20
COMPARED = ("score", "cost", "latency", "tokens")
BASELINE: Any = BlockStatistics._meta.get_field("baseline")
FIND_BASELINE = (
    f'SELECT pinned, baseline FROM "{BlockStatistics._meta.db_table}" '  # noqa: S608 - our own name
    "WHERE workflow_id = %s AND node_id = %s"
)


@dataclass(frozen=True)
class Measured:
    """The numbers of one node."""

    score: float | None
    cost_usd: float | None
    latency_ms: float | None
    tokens: int | None

    @classmethod
    def of(cls, node: RunNode, score: float | None) -> Measured:
        return cls(score, node.cost_usd, node.latency_ms, node.total_tokens)


def baseline_of(workflow_id: int, node_id: str) -> Mapping[str, Any] | None:
    """The baseline of a block by metric, or None before its first observation. One indexed read."""
    # Once for every block of every run: the ORM would take longer to ask.
    found = rows.execute(FIND_BASELINE, [workflow_id, node_id]).fetchone() or (None, None)
    pinned, baseline = (BASELINE.from_db_value(value, None, connection) for value in found)
    return pinned or baseline or None


def delta_of(measured: Measured, baseline: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """How a node differs from its baseline; None if there is nothing to compare with."""
    if not baseline:
        return None
    score = baseline.get("score")
    counts = {name: baseline[name]["count"] for name in COMPARED if name in baseline}
    return {
        "score_delta": _difference(measured.score, score),
        "cost_pct": _percent(measured.cost_usd, baseline.get("cost")),
        "latency_pct": _percent(measured.latency_ms, baseline.get("latency")),
        "tokens_pct": _percent(measured.tokens, baseline.get("tokens")),
        "baseline_score": score["mean"] if score else None,
        # One that is worse stays with the runs before it was: the others rest on more.
        "baseline_run_count": max(counts.values(), default=0),
        "baseline_counts": counts,
        "low": score["low"] if score else None,
        "high": score["high"] if score else None,
    }


def _difference(value: float | None, metric: Mapping[str, Any] | None) -> float | None:
    return None if value is None or metric is None else float(round(value - metric["mean"], 6))


def _percent(value: float | None, metric: Mapping[str, Any] | None) -> float | None:
    if value is None or metric is None or not metric["mean"]:
        return None
    return float(round((value / metric["mean"] - 1) * 100, 2))
