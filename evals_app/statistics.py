"""One block's running statistics: what an observation changes, and nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals_app.baselines import RUNS_FOR_INTERVAL
from evals_app.evidence import Baseline, BlockEvidence, Change, Observed, Settings
from evals_app.models import BlockStatistics, Observation
from workflows_app.engine.definition import EvidenceSettings

METRICS = ("score", "cost", "latency", "tokens")
KEPT_SLICES = 60
MOVED_FIELDS = ("count", "baseline", "verdicts", "slices", "state", "updated_at")


def evidence_settings(section: EvidenceSettings) -> Settings:
    """The `evidence:` section of a workflow as the tests read it."""
    return Settings(
        sensitivity=section.sensitivity,  # type: ignore[arg-type]  # the validator allows only these words
        min_runs=section.min_runs,
        ignore=frozenset(section.ignore),
    )


def take(row: BlockStatistics, observation: Observation, settings: Settings) -> list[Change]:
    """Move a block's statistics by one observation. Replaying the observations gives the same row."""
    evidence = BlockEvidence.from_state(row.state or None, settings)
    changes = evidence.update(_observed(observation))
    row.count = observation.number
    row.state = evidence.to_state()
    row.slices = _add_to_slices(row.slices, observation)
    row.baseline = _baseline(evidence)
    row.verdicts = {
        name: {"state": verdict.state, "count": verdict.count, "needed": verdict.needed}
        for name, verdict in evidence.verdicts().items()
    }
    row.updated_at = observation.at
    return changes


def _observed(observation: Observation) -> Observed:
    return Observed(
        number=observation.number,
        score=observation.score,
        passed=observation.passed,
        cost_usd=observation.cost_usd,
        latency_ms=observation.latency_ms,
        tokens=observation.tokens,
        assertions=observation.assertions,
        workflow_version=observation.workflow_version,
        soul_version=observation.soul_version or None,
    )


def _baseline(evidence: BlockEvidence) -> dict[str, Any]:
    return {name: as_level(normal) for name, normal in evidence.baseline().items()}


def as_level(normal: Baseline) -> dict[str, Any]:
    """What is normal as pages and the API tell it: an interval only where enough runs make one."""
    has_interval = normal.count >= RUNS_FOR_INTERVAL
    return {
        "count": normal.count,
        "mean": normal.mean,
        "low": normal.low if has_interval else None,
        "high": normal.high if has_interval else None,
    }


# Slices: running totals by workflow version, soul version and assertion


def _add_to_slices(slices: Mapping[str, Any], observation: Observation) -> dict[str, Any]:
    added = {kind: dict(rows) for kind, rows in slices.items()}
    _add(added, "workflow_version", str(observation.workflow_version), observation, observation.passed)
    if observation.soul_version:
        _add(added, "soul_version", observation.soul_version, observation, observation.passed)
    for key, passed in observation.assertions.items():
        _add(added, "assertion", key, observation, passed)
    return {kind: _newest(rows, observation.number) for kind, rows in added.items()}


def _newest(rows: dict[str, Any], number: int) -> dict[str, Any]:
    """The slices kept: all of this observation, and the last touched of the others. Databases do not keep an order."""
    spare = len(rows) - KEPT_SLICES
    if spare <= 0:
        return rows
    old = sorted((row["last"], key) for key, row in rows.items() if row["last"] != number)
    dropped = {key for _, key in old[:spare]}
    return {key: row for key, row in rows.items() if key not in dropped}


def _add(slices: dict[str, Any], kind: str, key: str, observation: Observation, passed: bool | None) -> None:
    rows = slices.setdefault(kind, {})
    row = dict(rows.get(key) or {"count": 0, "graded": 0, "passed": 0, "first": observation.number})
    row["count"] += 1
    row["last"] = observation.number
    if passed is not None:
        row["graded"] += 1
        row["passed"] += int(passed)
    if kind != "assertion":
        values = {
            "score": observation.score,
            "cost": observation.cost_usd,
            "latency": observation.latency_ms,
            "tokens": observation.tokens,
        }
        for name, value in values.items():
            if value is not None:
                row[name] = _welford(row.get(name), value)
    rows[key] = row


def _welford(before: list[float] | None, value: float) -> list[float]:
    """Count, mean and sum of squared deviations, one value later."""
    count, mean, m2 = before or [0, 0.0, 0.0]
    count += 1
    step = value - mean
    mean += step / count
    return [count, mean, m2 + step * (value - mean)]


def slice_baseline(row: Mapping[str, Any]) -> dict[str, Any]:
    """A slice as a baseline: what was normal under that version."""
    found: dict[str, Any] = {}
    for name in METRICS:
        if name in row:
            count, mean, m2 = row[name]
            spread = (m2 / (count - 1)) ** 0.5 if count > 1 else 0.0
            has_interval = count >= RUNS_FOR_INTERVAL
            found[name] = {
                "count": int(count),
                "mean": mean,
                "low": mean - 1.645 * spread if has_interval else None,
                "high": mean + 1.645 * spread if has_interval else None,
            }
    return found
