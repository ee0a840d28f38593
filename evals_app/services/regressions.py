"""From evidence to a regression that people see: once when it begins, and once when it is over."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evals_app.evidence.model import RegressionChange, Suspect
from evals_app.models import Observation, Regression, RegressionState
from evals_app.monitoring.regressions import regression_summary
from workflows_app import clock, events
from workflows_app.models import EventName, Run


def apply(run: Run, observation: Observation, change: RegressionChange) -> bool:
    """Write what an observation changed: a regression opened, went on or closed. Whether the run found a new one."""
    unresolved = Regression.objects.unresolved().filter(
        workflow_id=observation.workflow_id, node_id=observation.node_id, kind=change.regression_kind
    )
    fields = _evidence_fields(change)
    if change.kind == "closed":
        fields |= {"state": RegressionState.RESOLVED, "resolved_at": clock.now()}
    if unresolved.update(**fields) or change.kind not in ("opened", "strengthened"):
        return False
    # Also what somebody resolved too early: it opens again once its evidence has doubled.
    _open(run, observation, change)
    return True


def resolve_removed(run: Run) -> None:
    """Resolve what was open about blocks that the run's version no longer has: no run will mention them again."""
    gone = Regression.objects.unresolved().filter(workflow_id=run.workflow_id)
    gone = gone.exclude(node_id__in=run.version.definition.blocks)
    gone.update(state=RegressionState.RESOLVED, resolved_at=clock.now())


def _open(run: Run, observation: Observation, change: RegressionChange) -> None:
    suspect = change.suspected
    wanted = {change.since_number, *([suspect.number] if suspect else [])}
    found = Observation.objects.filter(
        workflow_id=observation.workflow_id, node_id=observation.node_id, number__in=wanted
    ).only("number", "run_id", "run_number")
    numbered = {one.number: one for one in found}
    began = numbered.get(change.since_number)
    since = began.run_number if began else observation.run_number
    regression = Regression.objects.create(
        workflow=run.workflow,
        node_id=observation.node_id,
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
    events.append(run, seq, EventName.REGRESSION_FOUND, **regression_summary(regression))


def _suspected(suspect: Suspect, first: Observation | None) -> dict[str, Any]:
    """Only what changed is suspected; with the run at which it came, which need not be where the regression began."""
    workflow = suspect.workflow_version != suspect.previous_workflow_version
    soul = suspect.soul_version != suspect.previous_soul_version
    return {
        "workflow_version": suspect.workflow_version if workflow else None,
        "soul_version": suspect.soul_version if soul else None,
        "from_run": first.run_number if first else None,
    }


def _evidence_fields(change: RegressionChange) -> dict[str, Any]:
    # Tokens stand in for a cost that is not known.
    unit = {"unit": "tokens"} if change.metric == "tokens" else {}
    return {
        "assertion": change.assertion or "",
        "before": asdict(change.before) | unit,
        "after": asdict(change.after) | unit,
        "evidence": change.evidence,
    }
