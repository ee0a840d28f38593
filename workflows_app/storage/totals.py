"""What runs add up to by the hour, kept so that a month of a busy site is read as fast as a quiet one.

An hour is added up once it is long over. Whoever changes one of its runs after that marks it in the same
transaction, and it is added up again; until then readers take the runs themselves from there on. So what is read
is always right, whichever process is late or dead.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, IntegerField, Max, Min, Q, QuerySet, Sum
from django.db.models.expressions import Func
from django.utils import timezone

from workflows_app import clock
from workflows_app.models import Run, RunQuerySet, RunStatus, RunTotals

SLOT_SECONDS = 3600
# Two hours lie between: no transaction is open that long, and no clock of ours is that wrong.
MARKED_AFTER = timedelta(hours=1)
SETTLED_AFTER = timedelta(hours=3)
STALE_A_SWEEP = 100

_COMPLETED = Q(status=RunStatus.COMPLETED)
# What each column adds up.
SUMS: dict[str, Any] = {
    "runs": Count("pk"),
    "passed": Count("pk", filter=RunQuerySet.PASSED),
    "rated": Count("pk", filter=RunQuerySet.RATED),
    "scored": Count("eval_score", filter=_COMPLETED),
    "score": Sum("eval_score", filter=_COMPLETED, default=0.0),
    "priced": Count("cost_usd"),
    "cost_usd": Sum("cost_usd", default=0.0),
}

# The fields of a run that they add up. `events.advance` marks the hour of a run when it writes one of these.
SUMMED_FIELDS = frozenset({"status", "eval_score", "eval_passed", "cost_usd"})

NOTHING = dict.fromkeys(SUMS, 0)

Sums = dict[int, dict[str, Any]]


class SlotOf(Func):
    """The slot a moment lies in."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        # Without the fraction, which SQLite would round.
        seconds = "CAST(STRFTIME('%%%%s', SUBSTR(%(expressions)s, 1, 19)) AS INTEGER)"
        return self.as_sql(compiler, connection, template=f"({seconds} / {SLOT_SECONDS})")

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = f"CAST(FLOOR(EXTRACT(EPOCH FROM %(expressions)s) / {SLOT_SECONDS}) AS INTEGER)"
        return self.as_sql(compiler, connection, template=template)


def _stretch_of(slot: str | SlotOf, start: int, size: int) -> Func:
    """The number of the stretch of `size` slots that a slot lies in, counted from `start`, which it is not before."""
    return Func(slot, template=f"((%(expressions)s - {start}) / {size})", output_field=IntegerField())


def slot_of(moment: datetime) -> int:
    """The hour a moment lies in."""
    return int(moment.timestamp() // SLOT_SECONDS)


def start_of(slot: int) -> datetime:
    """When an hour began."""
    return datetime.fromtimestamp(slot * SLOT_SECONDS, UTC)


# Writing


def run_changed(run: Run) -> None:
    """Mark the hour of a run, in the transaction that creates it or changes what it adds; a reported one may be old."""
    if run.is_counted:
        runs_changed([run.created_at])


def runs_changed(created_at: Iterable[datetime]) -> None:
    """The same for several counted runs, by when they were created."""
    settled = timezone.now() - MARKED_AFTER
    # In one order, so that two who mark the same wait for each other and not in a circle.
    slots = sorted({slot_of(moment) for moment in created_at if moment < settled})
    if slots:
        RunTotals.objects.bulk_create(
            [RunTotals(slot=slot, is_stale=True, mark=uuid.uuid4()) for slot in slots],
            update_conflicts=True,
            unique_fields=["slot"],
            update_fields=["is_stale", "mark"],
        )


def settle(**_: Any) -> None:
    """Add up what is over by now, and again what was marked."""
    end = slot_of(clock.database_now() - SETTLED_AFTER)
    extend(end)
    marked = RunTotals.objects.filter(is_stale=True, slot__lt=end).order_by("slot")
    for slot, mark in marked.values_list("slot", "mark")[:STALE_A_SWEEP]:
        sums = sums_of_runs(slot, slot + 1, slot).get(0, NOTHING)
        RunTotals.objects.filter(slot=slot, mark=mark).update(**sums, is_stale=False)


def extend(end: int) -> None:
    start = _settled()
    found = sums_of_runs(start, end, start)
    rows = [RunTotals(slot=start + number, **sums) for number, sums in sorted(found.items())]
    RunTotals.objects.bulk_create(rows, ignore_conflicts=True)  # what somebody marked meanwhile stays marked


def _settled() -> int:
    """The first slot that was not added up; every one before it is right, or marked."""
    newest = RunTotals.objects.filter(is_stale=False).aggregate(slot=Max("slot"))["slot"]
    return 0 if newest is None else newest + 1


# Reading


def totals(start: int, end: int, size: int) -> Sums:
    """What the counted runs of the slots from `start` to `end` add up to, by stretches of `size`, numbered from 0."""
    stale = RunTotals.objects.filter(is_stale=True, slot__gte=start).aggregate(slot=Min("slot"))["slot"]
    settled = min(max(start, _settled()), end if stale is None else stale, end)
    kept = RunTotals.objects.filter(slot__gte=start, slot__lt=settled)
    found = _sums(kept, _stretch_of("slot", start, size), {name: Sum(name) for name in SUMS})
    for number, sums in sums_of_runs(settled, end, start, size).items():
        before = found.get(number, NOTHING)
        found[number] = {name: before[name] + sums[name] for name in SUMS}
    return found


def totals_between(first: datetime, end: datetime) -> dict[str, Any]:
    """What the counted runs created in a short time add up to."""
    sums = _created_between(first, end).aggregate(**_renamed(SUMS))
    return {name: sums[f"sum_{name}"] for name in SUMS}


def sums_of_runs(first: int, end: int, start: int, size: int = 1) -> Sums:
    runs = _created_between(start_of(first), start_of(end))
    return _sums(runs, _stretch_of(SlotOf("created_at"), start, size), SUMS)


def _created_between(first: datetime, end: datetime) -> QuerySet[Run]:
    return Run.objects.counted().filter(created_at__gte=first, created_at__lt=end)


def _renamed(sums: Mapping[str, Any]) -> dict[str, Any]:
    """No annotation may be named like a field."""
    return {f"sum_{name}": expression for name, expression in sums.items()}


def _sums(rows: QuerySet[Any], stretch: Func, sums: Mapping[str, Any]) -> Sums:
    grouped = rows.order_by().values(stretch=stretch).annotate(**_renamed(sums))
    return {row["stretch"]: {name: row[f"sum_{name}"] for name in sums} for row in grouped}
