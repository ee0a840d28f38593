"""The figures of the dashboard and what needs attention, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, IntegerField, Q, QuerySet, Sum
from django.db.models.expressions import Func

from evals_app.models import Regression
from evals_app.ranges import UnknownRange, length_of
from evals_app.regressions import regression_summary, sentence
from workflows_app import clock
from workflows_app.models import Environment, Run, RunStatus, Source
from workflows_app.summaries import iso

# How many bars a sparkline has.
BUCKETS = {"24h": 24, "7d": 28, "30d": 30, "90d": 30}
MOST_ATTENTION = 50
RECENT_FAILURES = timedelta(hours=24)


class Bucket(Func):
    """The number of the stretch of `seconds` a moment lies in, counted from `start`."""

    output_field = IntegerField()

    def __init__(self, expression: str, start: datetime, seconds: float) -> None:
        super().__init__(expression)
        self.origin, self.seconds = start.timestamp(), seconds

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self._as(compiler, connection, "(julianday(%(expressions)s) - 2440587.5) * 86400.0")

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self._as(compiler, connection, "EXTRACT(EPOCH FROM %(expressions)s)")

    def _as(self, compiler: Any, connection: Any, epoch: str) -> Any:
        template = f"CAST(FLOOR(({epoch} - {self.origin!r}) / {self.seconds!r}) AS INTEGER)"
        return super().as_sql(compiler, connection, template=template)


def counted_runs() -> QuerySet[Run]:
    """The runs the figures speak of: production, no evals; a child is part of its parent."""
    # By depth and not by parent: SQLite takes the index of the parent, which says the same of nearly every run.
    return Run.objects.filter(environment=Environment.PRODUCTION, depth=0).exclude(source=Source.EVAL)


def dashboard(range: str = "24h") -> dict[str, Any]:
    """Pass rate, mean score, cost and runs of a range, each with the range before it and a series."""
    return {
        "range": range,
        **figures(range),
        "running": Run.objects.active().count(),
        "attention": attention(),
    }


def figures(range: str) -> dict[str, dict[str, Any]]:
    """Four figures: `{value, previous, series}` each. One query."""
    if range not in BUCKETS:
        raise UnknownRange(f"{range!r} is no range; use one of {', '.join(BUCKETS)}.")
    length, count = length_of(range), BUCKETS[range]
    assert length is not None
    now = clock.now()
    start, seconds = now - length, length.total_seconds() / count
    sums = _sums(counted_runs().filter(created_at__gt=start - length, created_at__lte=now), start, seconds)
    before = [sums.get(index, {}) for index in _span(-count, 0)]
    current = [sums.get(index, {}) for index in _span(0, count)]
    return {
        name: {
            "value": read(_total(current)),
            "previous": read(_total(before)),
            "series": list(map(read, current)),
        }
        for name, read in _FIGURES.items()
    }


_span = range  # the parameters above say `range` for what people pick


def _sums(runs: QuerySet[Run], start: datetime, seconds: float) -> dict[int, dict[str, Any]]:
    rows = (
        runs.order_by()
        .values(bucket=Bucket("created_at", start, seconds))
        .annotate(
            # Counted by a column of the index `run_figures`: the key is not in it.
            runs=Count("created_at"),
            passed=Count("created_at", filter=Q(eval_passed=True)),
            judged=Count("eval_passed"),
            scored=Count("eval_score"),
            score=Avg("eval_score"),
            priced=Count("cost_usd"),
            cost=Sum("cost_usd"),
        )
    )
    return {row["bucket"]: {**row, "score": (row["score"] or 0.0) * row["scored"]} for row in rows}


def _total(buckets: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("runs", "passed", "judged", "scored", "score", "priced", "cost")
    return {name: sum(bucket.get(name) or 0 for bucket in buckets) for name in names}


def _ratio(sums: Mapping[str, Any], part: str, whole: str) -> float | None:
    return round(sums[part] / sums[whole], 6) if sums.get(whole) else None


_FIGURES: dict[str, Any] = {
    "pass_rate": lambda sums: _ratio(sums, "passed", "judged"),
    "mean_score": lambda sums: _ratio(sums, "score", "scored"),
    "cost_usd": lambda sums: round(sums["cost"], 9) if sums.get("priced") else None,
    "runs": lambda sums: sums.get("runs", 0),
}


def attention(limit: int = MOST_ATTENTION) -> list[dict[str, Any]]:
    """What a person should look at first: unresolved regressions by evidence, then runs that failed today."""
    rows = Regression.objects.unresolved().by_evidence().select_related("workflow")[:limit]
    found = [_regression_item(row) for row in rows]
    failed = (
        counted_runs()
        .filter(status=RunStatus.FAILED, created_at__gte=clock.now() - RECENT_FAILURES)
        .for_list()  # type: ignore[attr-defined]  # the manager's own QuerySet
        .order_by("-created_at")[: limit - len(found)]
    )
    return found + [_failed_item(run) for run in failed]


def _regression_item(row: Regression) -> dict[str, Any]:
    suspected = (row.suspected or {}).get("workflow_version")
    return {
        "type": "regression",
        "sentence": sentence(row, row.workflow.slug),
        "at": iso(row.found_at),
        "workflow": row.workflow.slug,
        "node_id": row.node_id,
        "run": str(row.found_run_id) if row.found_run_id else None,
        "run_number": row.found_run_number,
        "suspected_version": suspected,
        "regression": regression_summary(row, row.workflow.slug),
    }


def _failed_item(run: Run) -> dict[str, Any]:
    reason = (run.error or {}).get("message", "no reason was recorded")
    return {
        "type": "failed_run",
        "sentence": f"{run.workflow.slug} #{run.number} failed: {reason}",
        "at": iso(run.finished_at or run.created_at),
        "workflow": run.workflow.slug,
        "node_id": None,
        "run": str(run.pk),
        "run_number": run.number,
        "suspected_version": None,
        "regression": None,
    }
