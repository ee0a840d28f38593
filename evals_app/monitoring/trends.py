"""A block's history as a line: read from observations only, so pruned runs keep their points."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Avg, Case, F, FloatField, Func, Max, Min, QuerySet, Sum, Value, When

from evals_app.block_metrics import AMOUNTS, COLUMNS, MEASURED, PASS_RATE
from evals_app.evidence.measures import normal_of
from evals_app.evidence.series import WINDOW
from evals_app.models import Observation, PinnedBaseline, Regression, RegressionQuerySet
from evals_app.monitoring.baselines import as_level, baseline_of
from evals_app.monitoring.ranges import length_of, runs_in
from evals_app.monitoring.regressions import kinds_of
from workflows_app import clock
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Workflow

MOST_POINTS = 500
MOST_MARKS = 100
# A single run either passes or not; a rate needs a stretch of them.
RATE_WINDOW = 20
LOOKED_BACK = 100  # runs before a range, to find as many that were graded
RECENT_RUNS = 100  # whose named metrics can be picked
KNOWN_RUNS = 1_500  # whose named metrics are known: what a long range draws may be empty in a short one
MOST_LISTED = 20  # in a sentence
TABLE = f'"{Observation._meta.db_table}"'
NAMES = {
    "postgresql": f"SELECT DISTINCT jsonb_object_keys(named_scores) FROM {TABLE}",  # noqa: S608 - our own names
    "sqlite": f"SELECT DISTINCT named.key FROM {TABLE}, JSON_EACH(named_scores) AS named",  # noqa: S608
}


class UnknownTrend(InvalidDocument):
    """A block or metric that a workflow does not have; the sentence lists those it has."""


class Seen(NamedTuple):
    """One run as the line needs it before any point is left out."""

    number: int
    value: float | None
    version: int


class Point(NamedTuple):
    """One run on the line; `run` is None once it was pruned."""

    run: UUID | None
    number: int
    at: datetime
    version: int
    value: float | None
    passed: bool | None


class VersionStart(NamedTuple):
    """When a version came into use."""

    number: int
    at: datetime


@dataclass(frozen=True)
class Trend:
    """A metric over runs, what is normal for it, and the versions and regressions to mark."""

    block: str | None
    metric: str
    points: list[Point]
    baseline: Mapping[str, Any] | None
    versions: list[VersionStart]
    regressions: list[Regression]


@dataclass(frozen=True)
class Subject:
    """What a line is about: one block, or a whole workflow, run by run, if `block` is ''."""

    workflow: Workflow
    block: str

    @property
    def rows(self) -> QuerySet[Observation]:
        rows = Observation.objects.filter(workflow=self.workflow)
        return rows.filter(node_id=self.block) if self.block else rows

    @property
    def key(self) -> str:
        """The column that numbers the points."""
        return "number" if self.block else "run_number"

    @cached_property
    def newest(self) -> int:
        return self.rows.aggregate(newest=Max(self.key))["newest"] or 0

    @property
    def regressions(self) -> RegressionQuerySet:
        rows: RegressionQuerySet = self.workflow.regressions.all()
        return rows.filter(node_id=self.block) if self.block else rows

    def by_run(self, rows: QuerySet[Observation], metric: str) -> Any:
        """The metric of each run; of a whole workflow, over its blocks."""
        return rows.values(self.key).annotate(seen_value=_total(metric))


def trend(
    workflow: Workflow,
    block: str,
    metric: str = "score",
    range: str = "30d",
    *,
    most_runs: int | None = None,
) -> Trend:
    """Points, baseline, version changes and regressions of one block; of the whole workflow if `block` is ''.

    `metric` is score, pass_rate, cost, latency, tokens or a named metric; `range` is 24h, 7d, 30d, 90d, all or
    a number of runs. At most `MOST_POINTS` points: the lowest and highest of each stretch, every one a real run.
    With `most_runs` a long range is cut to the newest so many, and costs the same whatever is stored.
    """
    subject = Subject(workflow, block)
    rows = _in_range(subject, range, most_runs)
    seen = _seen(subject, rows, metric)
    if not seen:
        check_block(workflow, block)
    if metric not in COLUMNS and all(one.value is None for one in seen):
        _check_metric(workflow, block, metric)
    if metric == PASS_RATE:
        seen = _rates(seen, _graded_before(subject, seen))
    return Trend(
        block=block or None,
        metric=metric,
        points=_points(subject, rows, thin(seen, MOST_POINTS)),
        baseline=_baseline(subject, metric),
        versions=_version_starts(subject, rows, seen),
        regressions=list(subject.regressions[:MOST_MARKS]),
    )


def metrics_of(workflow: Workflow, block: str, runs: int = RECENT_RUNS) -> list[str]:
    """Every metric that lately had something to draw for a block, or for any block of the workflow if `block` is ''."""
    subject = Subject(workflow, block)
    lately = f"WHERE workflow_id = %s {'AND node_id = %s' if block else ''} AND {subject.key} > %s"
    # The newest is looked up first: PostgreSQL walks no index from a number that it does not know yet.
    values: list[str | int] = [workflow.pk, *([block] if block else []), subject.newest - runs]
    with connection.cursor() as cursor:
        cursor.execute(f"{NAMES[connection.vendor]} {lately}", values)
        found = cursor.fetchall()
    return [*COLUMNS, *sorted(name for (name,) in found if name not in COLUMNS)]


def check_block(workflow: Workflow, block: str) -> None:
    """Refuse a block that the workflow neither has nor had: one no longer in the document still has its history."""
    if not block:
        return
    definition = workflow.readable_definition
    known = list(definition.blocks) if definition else []
    if block in known or workflow.block_statistics.filter(node_id=block).exists():
        return
    listed = f"; its blocks are {_listed(known)}." if known else "."
    raise UnknownTrend([Fault("block", None, f"{workflow.slug} has no block {block!r}{listed}")])


def _check_metric(workflow: Workflow, block: str, metric: str) -> None:
    """Refuse a metric that nothing in the workflow has; one of another block is not wrong, only empty here."""
    possible = metrics_of(workflow, block)
    if metric in possible or metric in metrics_of(workflow, "", KNOWN_RUNS):
        return
    message = f"{metric!r} is no metric of {block or workflow.slug}; use one of {_listed(possible)}."
    raise UnknownTrend([Fault("metric", None, message)])


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:MOST_LISTED], *(["…"] if len(names) > MOST_LISTED else [])])


def _in_range(subject: Subject, range: str, most_runs: int | None) -> QuerySet[Observation]:
    rows = subject.rows
    count = runs_in(range)
    if count is None and (length := length_of(range)) is not None:
        rows = rows.filter(at__gte=clock.now() - length)
    limits = [limit for limit in (count, most_runs) if limit is not None]
    return rows.filter(**{f"{subject.key}__gt": subject.newest - min(limits)}) if limits else rows


def _seen(subject: Subject, rows: QuerySet[Observation], metric: str) -> list[Seen]:
    found = subject.by_run(rows.order_by(subject.key), metric).annotate(seen_version=Max("workflow_version"))
    return [
        Seen(number, _as_number(value), version)
        for number, value, version in found.values_list(subject.key, "seen_value", "seen_version")
    ]


class NamedScore(Func):
    """The score of a metric named in assertions, as a number; a name such as `3` is a name, too."""

    output_field = FloatField()

    def __init__(self, metric: str) -> None:
        super().__init__(F("named_scores"), Value(metric))

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(%(expressions)s)::double precision"
        return super().as_sql(compiler, connection, template=template, arg_joiner=" ->> ", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Not by a path: in one of SQLite's, nothing can stand for a double quote.
        template = "(SELECT value FROM JSON_EACH(%(expressions)s)"
        return super().as_sql(compiler, connection, template=template, arg_joiner=") WHERE key = ", **context)


def _total(metric: str) -> Any:
    """The metric of a run from those of its blocks."""
    if metric == PASS_RATE:
        return Min(Case(When(passed=True, then=Value(1)), When(passed=False, then=Value(0))))
    if metric in AMOUNTS:
        return Sum(COLUMNS[metric])
    return Avg(F("score") if metric == "score" else NamedScore(metric))


def _as_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _graded_before(subject: Subject, seen: Sequence[Seen]) -> list[float]:
    """The verdicts just before a range: its first rates count as many runs as those of a longer one."""
    if not seen:
        return []
    first = seen[0].number
    rows = subject.rows.filter(**{f"{subject.key}__lt": first, f"{subject.key}__gte": first - LOOKED_BACK})
    return [one.value for one in _seen(subject, rows, PASS_RATE) if one.value is not None]


def _rates(seen: Sequence[Seen], before: Sequence[float]) -> list[Seen]:
    """The share passed among the last runs, at each run that was graded."""
    window: deque[float] = deque(before, maxlen=RATE_WINDOW)
    rates = []
    for one in seen:
        if one.value is not None:
            window.append(one.value)
        rates.append(one._replace(value=None if one.value is None else sum(window) / len(window)))
    return rates


def thin(seen: Sequence[Seen], most: int) -> dict[int, float | None]:
    """At most `most` of them by number: first, last, and the lowest and highest of each stretch between."""
    if len(seen) <= most:
        return {one.number: one.value for one in seen}
    kept = {seen[0].number: seen[0].value, seen[-1].number: seen[-1].value}
    stretches = (most - 2) // 2
    for index in range(stretches):
        stretch = seen[index * len(seen) // stretches : (index + 1) * len(seen) // stretches]
        ordered = sorted((one.value, one.number) for one in stretch if one.value is not None)
        kept |= {number: value for value, number in ordered[:1] + ordered[-1:]}
    return kept


def _points(subject: Subject, rows: QuerySet[Observation], kept: Mapping[int, float | None]) -> list[Point]:
    key = subject.key
    chosen = rows.filter(**{f"{key}__in": list(kept)}).order_by(key)
    points: dict[int, Point] = {}
    columns = (key, "run_id", "run_number", "at", "workflow_version", "passed")
    for number, run, run_number, at, version, passed in chosen.values_list(*columns):
        known = points.get(number)
        if known is None:
            points[number] = Point(run, run_number, at, version, kept[number], passed)
        elif passed is not None:  # another block of the same run
            points[number] = known._replace(passed=passed and known.passed is not False)
    return list(points.values())


def _baseline(subject: Subject, metric: str) -> Mapping[str, Any] | None:
    """What is normal: of what is pinned, else of the last hundred runs before what is open about the metric.

    Of a block's numbers its statistics know it; they leave the pass rate and named metrics to its runs.
    """
    workflow, block, key = subject.workflow, subject.block, subject.key
    if block and metric in MEASURED:
        level: Mapping[str, Any] | None = (baseline_of(workflow.pk, block) or {}).get(metric)
        return level
    rows = subject.rows
    pinned = PinnedBaseline.objects.filter(workflow=workflow).select_related("version").first()
    if pinned is None:
        worse = subject.regressions.unresolved().filter(kind__in=kinds_of(metric))
        began = worse.aggregate(began=Min(f"since_{key}"))["began"]
        rows = rows.filter(**{f"{key}__lt": began}) if began else rows
    elif pinned.version is None:
        rows = rows.filter(run=pinned.run_id)
    elif block:
        return _rate_under(subject, pinned.version.number) if metric == PASS_RATE else None
    else:
        rows = rows.filter(workflow_version=pinned.version.number)
    newest = subject.by_run(rows.order_by(f"-{key}"), metric).values_list("seen_value", flat=True)[:WINDOW]
    normal = normal_of([number for value in newest if (number := _as_number(value)) is not None])
    if normal is None:
        return None
    # A run passes or not: an interval of nine runs in ten means nothing for a rate.
    return as_level(normal) | ({"low": None, "high": None} if metric == PASS_RATE else {})


def _rate_under(subject: Subject, version: int) -> dict[str, Any] | None:
    """The pass rate of a version, from the block's running totals: its runs may be a million ago."""
    rows = subject.workflow.block_statistics.filter(node_id=subject.block)
    by_version = rows.values_list("slices__workflow_version", flat=True).first() or {}
    totals = by_version.get(str(version)) or {}
    if not totals.get("graded"):
        return None
    rate = totals["passed"] / totals["graded"]
    return {"count": totals["graded"], "mean": rate, "low": None, "high": None}


def _version_starts(
    subject: Subject, rows: QuerySet[Observation], seen: Sequence[Seen]
) -> list[VersionStart]:
    """Where the line passes from one version to the next, the first included."""
    changes: dict[int, int] = {}
    version = None
    for one in seen:
        if one.version != version:
            changes[one.number] = version = one.version
    key = subject.key
    wanted = list(changes)[-MOST_MARKS:]
    moments = rows.filter(**{f"{key}__in": wanted}).order_by(key).values_list(key, "at")
    starts = {changes[number]: at for number, at in moments}
    return [VersionStart(number, at) for number, at in starts.items()]
