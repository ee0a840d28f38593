"""A block's history as a line: read from observations only, so pruned runs keep their points."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Avg, Case, F, FloatField, Func, Max, Min, QuerySet, Sum, Value, When

from evals_app.baselines import baseline_of
from evals_app.evidence import WINDOW, normal_of
from evals_app.models import BlockStatistics, Observation, PinnedBaseline, Regression
from evals_app.ranges import length_of, runs_in
from evals_app.regressions import kinds_of, regression_summary
from evals_app.statistics import as_level
from workflows_app import clock
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Workflow
from workflows_app.rows import execute
from workflows_app.summaries import iso

MOST_POINTS = 500
MOST_MARKS = 100
# A single run either passes or not; a rate needs a stretch of them.
RATE_WINDOW = 20
LOOKED_BACK = 100  # runs before a range, to find as many that were graded
COLUMNS = {"score": "score", "cost": "cost_usd", "latency": "latency_ms", "tokens": "tokens"}
PASS_RATE = "pass_rate"  # noqa: S105 - a metric
MEASURED = ("score", PASS_RATE, "cost", "latency", "tokens")
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
    """One observation as the line needs it before any point is left out."""

    number: int
    value: float | None
    version: int


def trend(
    workflow: Workflow,
    block: str,
    metric: str = "score",
    range: str = "30d",
    *,
    most_runs: int | None = None,
) -> dict[str, Any]:
    """Points, baseline, version changes and regressions of one block; of the whole workflow if `block` is ''.

    `metric` is score, pass_rate, cost, latency, tokens or a named metric; `range` is 24h, 7d, 30d, 90d, all or
    a number of runs. At most `MOST_POINTS` points: the lowest and highest of each stretch, every one a real run.
    With `most_runs` a long range is cut to the newest so many, and costs the same whatever is stored.
    """
    rows = _in_range(workflow, block, range, most_runs)
    seen = _seen(rows, block, metric)
    if not seen:
        check_block(workflow, block)
    if metric not in MEASURED and all(one.value is None for one in seen):
        _check_metric(workflow, block, metric)
    if metric == PASS_RATE:
        seen = _rates(seen, _graded_before(workflow, block, seen))
    kept = thin(seen, MOST_POINTS)
    return {
        "block": block or None,
        "metric": metric,
        "points": _points(rows, block, kept),
        "baseline": _block_baseline(workflow, block, metric) if block else _whole_baseline(workflow, metric),
        "versions": _version_changes(rows, block, seen),
        "regressions": _regressions(workflow, block),
    }


def metrics_of(workflow: Workflow, block: str, runs: int = RECENT_RUNS) -> list[str]:
    """Every metric that lately had something to draw for a block, or for any block of the workflow if `block` is ''."""
    column, of = ("number", "AND node_id = %s") if block else ("run_number", "")
    own = Observation.objects.filter(workflow=workflow, **({"node_id": block} if block else {}))
    # Looked up first: PostgreSQL walks no index from a number that it does not know yet.
    newest = own.aggregate(newest=Max(column))["newest"] or 0
    lately = f"WHERE workflow_id = %s {of} AND {column} > %s"
    values = [workflow.pk, *([block] if block else []), newest - runs]
    found = execute(f"{NAMES[connection.vendor]} {lately}", values)
    return [*MEASURED, *sorted(name for (name,) in found.fetchall() if name not in MEASURED)]


def check_block(workflow: Workflow, block: str) -> None:
    """Refuse a block that the workflow neither has nor had: one no longer in the document still has its history."""
    if not block:
        return
    version = workflow.current_version
    definition = version.readable_definition if version else None
    known = list(definition.blocks) if definition else []
    if block in known or workflow.block_statistics.filter(node_id=block).exists():
        return
    listed = f"; its blocks are {_listed(known)}." if known else "."
    raise UnknownTrend([Fault("block", None, f"{workflow.slug} has no block {block!r}{listed}")])


def _check_metric(workflow: Workflow, block: str, metric: str) -> None:
    """Refuse a metric that nothing in the workflow has; one of another block is nothing wrong, only empty here."""
    would_do = metrics_of(workflow, block)
    if metric in would_do or metric in metrics_of(workflow, "", KNOWN_RUNS):
        return
    what = f"{metric!r} is no metric of {block or workflow.slug}"
    raise UnknownTrend([Fault("metric", None, f"{what}; use one of {_listed(would_do)}.")])


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:MOST_LISTED], *(["…"] if len(names) > MOST_LISTED else [])])


def _in_range(
    workflow: Workflow, block: str, range: str, most_runs: int | None = None
) -> QuerySet[Observation]:
    rows = Observation.objects.filter(workflow=workflow)
    if block:
        rows = rows.filter(node_id=block)
    count = runs_in(range)
    if count is None:
        length = length_of(range)
        rows = rows.filter(at__gte=clock.now() - length) if length else rows
        count = most_runs
    elif most_runs is not None:
        count = min(count, most_runs)
    if count is None:
        return rows
    key = "number" if block else "run_number"
    newest = Observation.objects.filter(workflow=workflow, **({"node_id": block} if block else {}))
    return rows.filter(**{f"{key}__gt": (newest.aggregate(newest=Max(key))["newest"] or 0) - count})


def _seen(rows: QuerySet[Observation], block: str, metric: str) -> list[Seen]:
    if block:
        expression = _expression(metric)
        found = rows.order_by("number").values_list("number", expression, "workflow_version")
        return [Seen(number, _as_number(value), version) for number, value, version in found]
    per_run = rows.order_by("run_number").values("run_number")
    totals = per_run.annotate(seen_value=_total(metric), seen_version=Max("workflow_version"))
    found = totals.values_list("run_number", "seen_value", "seen_version")
    return [Seen(number, _as_number(value), version) for number, value, version in found]


class NamedScore(Func):
    """The score of a metric named in assertions, as a number; a name such as `3` is a name, too."""

    output_field = FloatField()

    def __init__(self, metric: str) -> None:
        super().__init__(F("named_scores"), Value(metric))

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return super().as_sql(
            compiler,
            connection,
            template="(%(expressions)s)::double precision",
            arg_joiner=" ->> ",
            **context,
        )

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Not by a path: in one of SQLite's, nothing can stand for a double quote.
        return super().as_sql(
            compiler,
            connection,
            template="(SELECT value FROM JSON_EACH(%(expressions)s)",
            arg_joiner=") WHERE key = ",
            **context,
        )


def _expression(metric: str) -> Any:
    if metric in COLUMNS:
        return F(COLUMNS[metric])
    return F("passed") if metric == PASS_RATE else NamedScore(metric)


def _total(metric: str) -> Any:
    """What several blocks of a run come to."""
    if metric == PASS_RATE:
        return Min(_as_integer("passed"))
    if metric in ("cost", "latency", "tokens"):
        return Sum(COLUMNS[metric])
    return Avg(F("score") if metric == "score" else NamedScore(metric))


def _as_integer(column: str) -> Case:
    return Case(When(**{column: True}, then=Value(1)), When(**{column: False}, then=Value(0)))


def _as_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _graded_before(workflow: Workflow, block: str, seen: Sequence[Seen]) -> list[float]:
    """The verdicts just before a range: its first rates speak of as many runs as those of a longer one."""
    if not seen:
        return []
    key, first = ("number" if block else "run_number"), seen[0].number
    rows = Observation.objects.filter(workflow=workflow, **({"node_id": block} if block else {}))
    rows = rows.filter(**{f"{key}__lt": first, f"{key}__gte": first - LOOKED_BACK})
    return [one.value for one in _seen(rows, block, PASS_RATE) if one.value is not None]


def _rates(seen: Sequence[Seen], before: Sequence[float]) -> list[Seen]:
    """The share passed among the last runs, at each run that was graded."""
    window: deque[float] = deque(before, maxlen=RATE_WINDOW)
    rates = []
    for one in seen:
        if one.value is not None:
            window.append(one.value)
        rates.append(
            one._replace(value=sum(window) / len(window) if window and one.value is not None else None)
        )
    return rates


def thin(seen: Sequence[Seen], most: int) -> dict[int, float | None]:
    """At most `most` of them by number: first, last, and the lowest and highest of each stretch between."""
    if len(seen) <= most:
        return {one.number: one.value for one in seen}
    kept = {seen[0].number: seen[0].value, seen[-1].number: seen[-1].value}
    stretches = (most - 2) // 2
    for index in range(stretches):
        stretch = seen[index * len(seen) // stretches : (index + 1) * len(seen) // stretches]
        valued = [one for one in stretch if one.value is not None]
        for one in (min(valued, key=_value), max(valued, key=_value)) if valued else ():
            kept[one.number] = one.value
    return kept


def _value(one: Seen) -> float:
    return one.value if one.value is not None else 0.0


def _points(
    rows: QuerySet[Observation], block: str, kept: Mapping[int, float | None]
) -> list[dict[str, Any]]:
    key = "number" if block else "run_number"
    chosen = rows.filter(**{f"{key}__in": list(kept)}).order_by(key)
    points: dict[int, dict[str, Any]] = {}
    columns = (key, "run_id", "run_number", "at", "workflow_version", "passed")
    for number, run, run_number, at, version, passed in chosen.values_list(*columns):
        known = points.get(number)
        if known is not None:  # another block of the same run
            known["passed"] = _both(known["passed"], passed)
            continue
        points[number] = {
            "run": str(run) if run else None,
            "number": run_number,
            "at": iso(at),
            "version": version,
            "value": kept[number],
            "passed": passed,
        }
    return list(points.values())


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Two verdicts as one; no verdict adds nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one and other


def _block_baseline(workflow: Workflow, block: str, metric: str) -> dict[str, Any] | None:
    """What is usual for a block: from its statistics, which leave the pass rate and named metrics to its last runs."""
    if metric in COLUMNS:
        found: dict[str, Any] | None = (baseline_of(workflow.pk, block) or {}).get(metric)
        return found
    rows = Observation.objects.filter(workflow=workflow, node_id=block)
    pinned = PinnedBaseline.objects.filter(workflow=workflow).select_related("version").first()
    if pinned is not None and pinned.version is not None:
        return _rate_under(workflow, block, pinned.version.number) if metric == PASS_RATE else None
    if pinned is not None:
        rows = rows.filter(run=pinned.run_id)
    else:
        worse = Regression.objects.unresolved().filter(workflow=workflow, node_id=block)
        began = worse.filter(kind__in=kinds_of(metric)).aggregate(began=Min("since_number"))["began"]
        rows = rows.filter(number__lt=began) if began else rows
    return _level(rows.order_by("-number").values_list(_expression(metric), flat=True), metric)


def _rate_under(workflow: Workflow, block: str, version: int) -> dict[str, Any] | None:
    """The pass rate of a version, from the block's running totals: its runs may be a million ago."""
    slices = BlockStatistics.objects.filter(workflow=workflow, node_id=block)
    by_version = slices.values_list("slices__workflow_version", flat=True).first() or {}
    totals = by_version.get(str(version)) or {}
    if not totals.get("graded"):
        return None
    rate = totals["passed"] / totals["graded"]
    return {"count": totals["graded"], "mean": rate, "low": None, "high": None}


def _level(values: Any, metric: str) -> dict[str, Any] | None:
    """What the newest of these values make usual."""
    known = [number for value in values[:WINDOW] if (number := _as_number(value)) is not None]
    normal = normal_of(known)
    if normal is None:
        return None
    level = as_level(normal)
    # A run passes or not; where nine runs in ten lie says nothing about a rate.
    return level | {"low": None, "high": None} if metric == PASS_RATE else level


def _whole_baseline(workflow: Workflow, metric: str) -> dict[str, Any] | None:
    """What runs as a whole come to: of what is pinned, else of the last hundred before what is open about the metric."""
    rows = Observation.objects.filter(workflow=workflow)
    pinned = PinnedBaseline.objects.filter(workflow=workflow).select_related("version").first()
    if pinned is not None:
        rows = rows.filter(
            **({"workflow_version": pinned.version.number} if pinned.version else {"run": pinned.run_id})
        )
    else:
        worse = Regression.objects.unresolved().filter(workflow=workflow, kind__in=kinds_of(metric))
        began = worse.aggregate(began=Min("since_run_number"))["began"]
        rows = rows.filter(run_number__lt=began) if began else rows
    per_run = rows.order_by("-run_number").values("run_number").annotate(seen_value=_total(metric))
    return _level(per_run.values_list("seen_value", flat=True), metric)


def _version_changes(rows: QuerySet[Observation], block: str, seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """Where the line passes from one version to the next, the first included."""
    key = "number" if block else "run_number"
    changes: dict[int, int] = {}
    version = None
    for one in seen:
        if one.version != version:
            version = one.version
            changes[one.number] = version
    wanted = list(changes)[-MOST_MARKS:]
    moments = rows.filter(**{f"{key}__in": wanted}).order_by(key).values_list(key, "at")
    marks = {changes[number]: iso(at) for number, at in moments}
    return [{"number": number, "at": at} for number, at in marks.items()]


def _regressions(workflow: Workflow, block: str) -> list[dict[str, Any]]:
    rows = Regression.objects.filter(workflow=workflow)
    if block:
        rows = rows.filter(node_id=block)
    return [regression_summary(row, workflow.slug) for row in rows[:MOST_MARKS]]
