"""The figures of the dashboard and what needs attention, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.text import Truncator

from evals_app.models import Regression, RegressionState
from evals_app.monitoring.ranges import UnknownRange, length_of
from evals_app.monitoring.regressions import LONGEST_NAME, regression_summary, sentence
from workflows_app import clock
from workflows_app.display.formats import iso
from workflows_app.models import Run, RunQuerySet, RunStatus
from workflows_app.storage import totals

# How many bars a sparkline has.
BUCKETS = {"24h": 24, "7d": 28, "30d": 30, "90d": 30}
MOST_ATTENTION = 50
LONGEST_REASON = 300
RECENT_FAILURES = timedelta(hours=24)
FAILURES_SHARE = 4  # one place in four is kept for failed runs
FAILURES_READ = 200


def dashboard(range: str = "24h") -> dict[str, Any]:
    """Pass rate, mean score, cost and runs of a range, each with the range before it and a series."""
    return {
        "range": range,
        **figures(range),
        "running": Run.objects.active().count(),
        "attention": attention(),
    }


def figures(range: str) -> dict[str, dict[str, Any]]:
    """Four figures: `{value, previous, series}` each."""
    if range not in BUCKETS:
        raise UnknownRange(f"{range!r} is no range; use one of {', '.join(BUCKETS)}.")
    length, count = length_of(range), BUCKETS[range]
    assert length is not None
    now = clock.now()
    start = now - length
    slots = int(length.total_seconds()) // totals.SLOT_SECONDS
    end = totals.slot_of(now) + 1
    found = totals.totals(end - 2 * slots, end, slots // count)
    series = [found.get(number, totals.NOTHING) for number in _span(2 * count)]
    before, current = _total(series[:count]), _total(series[count:])
    # A series has whole hours and the current one; the figures begin to the second.
    first = totals.start_of(end - slots)
    early = totals.totals_between(start, first)
    earlier = totals.totals_between(start - length, first - length)
    value = {name: current[name] + early[name] for name in totals.SUMS}
    previous = {name: before[name] - early[name] + earlier[name] for name in totals.SUMS}
    return {
        name: {"value": read(value), "previous": read(previous), "series": list(map(read, series[count:]))}
        for name, read in _FIGURES.items()
    }


_span = range  # the parameters above call what people pick `range`


def _total(sums: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: sum(one[name] for one in sums) for name in totals.SUMS}


def _ratio(sums: Mapping[str, Any], part: str, whole: str) -> float | None:
    return round(sums[part] / sums[whole], 6) if sums[whole] else None


_FIGURES: dict[str, Any] = {
    "pass_rate": lambda sums: _ratio(sums, "passed", "rated"),
    "mean_score": lambda sums: _ratio(sums, "score", "scored"),
    "cost_usd": lambda sums: round(sums["cost_usd"], 9) if sums["priced"] else None,
    "runs": lambda sums: sums["runs"],
}


def attention(limit: int = MOST_ATTENTION) -> list[dict[str, Any]]:
    """What needs attention first, each with its sentence."""
    return [
        _regression_item(one) if isinstance(one, Regression) else _failed_item(one)
        for one in needing_attention(limit)
    ]


@dataclass(frozen=True)
class FailedRun:
    """The newest run that failed with an error, and how many did."""

    run: Run
    times: int

    @property
    def sentence(self) -> str:
        """What failed, and why."""
        reason = Truncator(_reason(self.run)).chars(LONGEST_REASON)
        return f"{Truncator(self.run.workflow.slug).chars(LONGEST_NAME)} #{self.run.number} failed: {reason}"


def needing_attention(limit: int) -> list[Regression | FailedRun]:
    """Open regressions by evidence, runs that failed today, and regressions that somebody acknowledged."""
    worse = list(
        Regression.objects.unresolved().by_urgency().select_related("workflow", "acknowledged_by")[:limit]
    )
    failed = _failures()[:limit]
    opened = [row for row in worse if row.state == RegressionState.OPEN]
    # Some places are kept for failed runs, however many regressions there are.
    opened = opened[: limit - min(len(failed), limit // FAILURES_SHARE)]
    seen = [row for row in worse if row.state != RegressionState.OPEN]
    found: list[Regression | FailedRun] = [*opened, *failed, *seen]
    return found[:limit]


def _failures() -> list[FailedRun]:
    """The runs that failed in the last day, the newest first; one that fails every minute does not hide the others."""
    alike: dict[tuple[int, str], list[Run]] = {}
    failed = lately().filter(status=RunStatus.FAILED).for_list().defer("inputs")
    for run in failed.order_by("-created_at")[:FAILURES_READ]:
        alike.setdefault((run.workflow_id, _reason(run)), []).append(run)
    return [FailedRun(runs[0], len(runs)) for runs in alike.values()]


def lately() -> RunQuerySet:
    """The runs of the last day."""
    return Run.objects.counted().filter(created_at__gte=clock.now() - RECENT_FAILURES)


def _regression_item(row: Regression) -> dict[str, Any]:
    suspected = (row.suspected or {}).get("workflow_version")
    return {
        "type": "regression",
        "sentence": sentence(row),
        "at": iso(row.found_at),
        "workflow": row.workflow.slug,
        "node_id": row.node_id,
        "run": str(row.found_run_id) if row.found_run_id else None,
        "run_number": row.found_run_number,
        "suspected_version": suspected,
        "regression": regression_summary(row),
        "times": None,
    }


def _reason(run: Run) -> str:
    return str((run.error or {}).get("message", "no reason was recorded"))


def _failed_item(failure: FailedRun) -> dict[str, Any]:
    run = failure.run
    return {
        "type": "failed_run",
        "sentence": failure.sentence,
        "at": iso(run.finished_at or run.created_at),
        "workflow": run.workflow.slug,
        "node_id": None,
        "run": str(run.pk),
        "run_number": run.number,
        "suspected_version": None,
        "regression": None,
        "times": failure.times,
    }
