"""From evidence to something people are told: once when it begins, and once it is over."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.text import Truncator

from evals_app.evidence import Change, Suspect
from evals_app.models import (
    QUALITY_KINDS,
    BlockStatistics,
    Observation,
    Regression,
    RegressionKind,
    RegressionState,
)
from workflows_app import clock, events, formats
from workflows_app.models import EventName, Run
from workflows_app.summaries import iso

LONGEST_NAME = 60  # in a sentence
KIND_WORDS: dict[str, str] = {
    RegressionKind.ASSERTION: "Assertion regression",
    RegressionKind.QUALITY: "Quality drop",
    RegressionKind.COST: "Cost spike",
    RegressionKind.LATENCY: "Latency spike",
}
METRICS = {
    RegressionKind.ASSERTION: "pass_rate",
    RegressionKind.QUALITY: "score",
    RegressionKind.COST: "cost",
    RegressionKind.LATENCY: "latency",
}
KINDS = {
    "cost": frozenset({RegressionKind.COST}),
    "tokens": frozenset({RegressionKind.COST}),
    "latency": frozenset({RegressionKind.LATENCY}),
}


def apply(run: Run, row: BlockStatistics, observation: Observation, change: Change) -> bool:
    """Write what an observation changed: a regression opened, went on or closed. Whether the run tells of a new one."""
    unresolved = Regression.objects.unresolved().filter(
        workflow_id=row.workflow_id, node_id=row.node_id, kind=change.regression_kind
    )
    fields = _evidence_fields(change)
    if change.kind == "closed":
        fields |= {"state": RegressionState.RESOLVED, "resolved_at": clock.now()}
    if unresolved.update(**fields) or change.kind not in ("opened", "strengthened"):
        return False
    # Also what somebody resolved too early: it is told again once its evidence has doubled.
    _open(run, row, observation, change)
    return True


def resolve_removed(run: Run) -> None:
    """Resolve what was open about blocks that the run's version no longer has: nothing will be heard of them."""
    gone = Regression.objects.unresolved().filter(workflow_id=run.workflow_id)
    gone = gone.exclude(node_id__in=run.version.definition.blocks)
    gone.update(state=RegressionState.RESOLVED, resolved_at=clock.now())


def _open(run: Run, row: BlockStatistics, observation: Observation, change: Change) -> None:
    suspect = change.suspected
    wanted = {change.since_number, *([suspect.number] if suspect else [])}
    found = Observation.objects.filter(
        workflow_id=row.workflow_id, node_id=row.node_id, number__in=wanted
    ).only("number", "run_id", "run_number")
    numbered = {one.number: one for one in found}
    began = numbered.get(change.since_number)
    since = began.run_number if began else observation.run_number
    regression = Regression.objects.create(
        workflow_id=row.workflow_id,
        node_id=row.node_id,
        kind=change.regression_kind,
        since_number=change.since_number,
        since_run_id=began.run_id if began else None,
        since_run_number=since,
        found_run=run,
        found_run_number=run.number,
        found_at=clock.now(),
        suspected=_suspected(suspect, numbered.get(suspect.number)) if suspect else None,
        **_evidence_fields(change),
    )
    seq = events.advance(run, add={"regression_count": 1})
    events.append(run, seq, EventName.REGRESSION_FOUND, **regression_summary(regression, run.workflow.slug))


def _suspected(suspect: Suspect, first: Observation | None) -> dict[str, Any]:
    """Only what changed is suspected; with the run at which it came, which need not be where the regression began."""
    workflow = suspect.workflow_version != suspect.previous_workflow_version
    soul = suspect.soul_version != suspect.previous_soul_version
    return {
        "workflow_version": suspect.workflow_version if workflow else None,
        "soul_version": suspect.soul_version if soul else None,
        "from_run": first.run_number if first else None,
    }


def _evidence_fields(change: Change) -> dict[str, Any]:
    # Where the cost is not known the tokens speak for it.
    unit = {"unit": "tokens"} if change.metric == "tokens" else {}
    return {
        "assertion": change.assertion or "",
        "before": {"count": change.before.count, "mean": change.before.mean, **unit},
        "after": {"count": change.after.count, "mean": change.after.mean, **unit},
        "evidence": change.evidence,
    }


def regression_summary(regression: Regression, slug: str) -> dict[str, Any]:
    """A regression as the API and events show it."""
    return {
        "id": str(regression.pk),
        "workflow": slug,
        "node_id": regression.node_id,
        "kind": regression.kind,
        "assertion": regression.assertion or None,
        "state": regression.state,
        "since_run": regression.since_run_number,
        "found_run": regression.found_run_number,
        "suspected": regression.suspected,
        "before": regression.before,
        "after": regression.after,
        "evidence": regression.evidence,
        "found_at": iso(regression.found_at or timezone.now()),
    }


def sentence(regression: Regression, slug: str) -> str:
    """The sentence that matters, for a person."""
    what = {
        RegressionKind.ASSERTION: f"`{_short(regression.assertion.partition('#')[0])}` passed",
        RegressionKind.QUALITY: "score was",
        RegressionKind.COST: "cost was",
        RegressionKind.LATENCY: "took",
    }[RegressionKind(regression.kind)]
    before, after = _levels(regression)
    when = "then" if regression.state == RegressionState.RESOLVED else "now"
    since = _since(regression)
    return f"`{_short(regression.node_id)}` in {_short(slug)}: {what} {before}, {when} {after} since {since}"


def _since(regression: Regression) -> str:
    """The run at which it began, and the version if that began there; else the version is only suspected."""
    run = f"run #{regression.since_run_number}" if regression.since_run_number else "recently"
    suspected = regression.suspected or {}
    version, soul = suspected.get("workflow_version"), suspected.get("soul_version")
    cause = f"version {version}" if version else f"soul version {_short(soul)}" if soul else ""
    if not cause:
        return run
    first = suspected.get("from_run")
    if first in (None, regression.since_run_number):
        return f"{cause}, {run}"
    return f"{run}; {cause} (from run #{first}) is suspected"


def metric_of(regression: Regression) -> str:
    """What became worse, as trends and effects name it."""
    is_tokens = regression.before.get("unit") == "tokens"
    return "tokens" if is_tokens else METRICS[RegressionKind(regression.kind)]


def kinds_of(metric: str) -> frozenset[RegressionKind]:
    """The regressions that say something about a metric; pass rate and named metrics are about quality."""
    return KINDS.get(metric, QUALITY_KINDS)


def _levels(regression: Regression) -> tuple[str, str]:
    """What it was and what it is, as every figure of that metric reads."""
    metric = metric_of(regression)
    before, after = formats.told_apart(regression.before["mean"], regression.after["mean"], metric)
    return (f"{before} tokens", f"{after} tokens") if metric == "tokens" else (before, after)


def _short(name: str) -> str:
    return Truncator(name).chars(LONGEST_NAME)
