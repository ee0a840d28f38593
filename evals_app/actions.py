"""What people do about what was found: pin what counts as normal, acknowledge and resolve regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from evals_app import statistics
from evals_app.models import BlockStatistics, Observation, PinnedBaseline, Regression, RegressionState
from evals_app.services import lock_statistics, row_observations
from workflows_app.models import Run, Workflow, WorkflowVersion
from workflows_app.services import Refused, audit

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@transaction.atomic
def pin_baseline(
    workflow: Workflow,
    *,
    run: Run | None = None,
    version: WorkflowVersion | None = None,
    user: AbstractBaseUser | None = None,
) -> None:
    """Compare with one run or version instead of the last hundred; with neither, go back to those."""
    if run is not None and not Run.objects.select_for_update().filter(pk=run.pk).exists():
        raise Refused("conflict", f"Run #{run.number} no longer exists; it was deleted a moment ago.")
    if run is None and version is None:
        PinnedBaseline.objects.filter(workflow=workflow).delete()
    else:
        chosen = {"run": run, "version": version, "pinned_by_id": user.pk if user else None}
        PinnedBaseline.objects.update_or_create(
            workflow=workflow, defaults={**chosen, "pinned_at": timezone.now()}
        )
    names = BlockStatistics.objects.filter(workflow=workflow).values_list("node_id", flat=True)
    for row in lock_statistics(workflow, names).values():
        row.pinned = _pinned(row, run, version)
        row.save(update_fields=["pinned"])
    audit(
        user,
        "baseline.pin" if run or version else "baseline.unpin",
        workflow.slug,
        run=run.number if run else None,
        version=version.number if version else None,
    )


def pin_problem(workflow: Workflow, run: Run | None, version: WorkflowVersion | None) -> str | None:
    """Why a run or version cannot be pinned: nothing was observed of it, so there is nothing to compare with."""
    if run is not None and not Observation.objects.filter(workflow=workflow, run=run).exists():
        return f"Run #{run.number} says nothing about what is normal; pin a completed production run."
    if version is not None:
        slices = BlockStatistics.objects.filter(workflow=workflow).values_list("slices", flat=True)
        if not any(str(version.number) in found.get("workflow_version", {}) for found in slices):
            return f"Version {version.number} has no completed production run yet; run it first."
    return None


def _pinned(row: BlockStatistics, run: Run | None, version: WorkflowVersion | None) -> dict[str, Any] | None:
    if version is not None:
        found = row.slices.get("workflow_version", {}).get(str(version.number))
        return statistics.slice_baseline(found) if found else None
    if run is None:
        return None
    observation = row_observations(row).filter(run=run).first()
    if observation is None:
        return None
    values = {
        "score": observation.score,
        "cost": observation.cost_usd,
        "latency": observation.latency_ms,
        "tokens": observation.tokens,
    }
    return {
        name: {"count": 1, "mean": value, "low": None, "high": None}
        for name, value in values.items()
        if value is not None
    }


@transaction.atomic
def acknowledge_regression(regression: Regression, user: AbstractBaseUser | None) -> Regression:
    """Somebody has seen it; it stays until the block is back or it is resolved."""
    moved = Regression.objects.filter(pk=regression.pk, state=RegressionState.OPEN).update(
        state=RegressionState.ACKNOWLEDGED,
        acknowledged_by_id=user.pk if user else None,
        acknowledged_at=timezone.now(),
    )
    return _handled(regression, moved, user, "acknowledge", RegressionState.ACKNOWLEDGED)


@transaction.atomic
def resolve_regression(regression: Regression, user: AbstractBaseUser | None) -> Regression:
    """Somebody says it is over."""
    moved = (
        Regression.objects.filter(pk=regression.pk)
        .exclude(state=RegressionState.RESOLVED)
        .update(
            state=RegressionState.RESOLVED,
            resolved_by_id=user.pk if user else None,
            resolved_at=timezone.now(),
        )
    )
    return _handled(regression, moved, user, "resolve", RegressionState.RESOLVED)


def _handled(
    regression: Regression, moved: int, user: AbstractBaseUser | None, verb: str, wanted: str
) -> Regression:
    regression.refresh_from_db()
    if moved:
        audit(
            user, f"regression.{verb}", f"{regression.workflow.slug}/{regression.node_id} {regression.kind}"
        )
    elif regression.state != wanted:
        raise Refused("conflict", f"This regression is already {regression.state}.")
    return regression
