"""What people decide: which baseline is pinned, which regressions are acknowledged or resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from evals_app.block_metrics import observed_values
from evals_app.evidence.model import Baseline
from evals_app.models import BlockStatistics, Observation, PinnedBaseline, Regression, RegressionState
from evals_app.monitoring.baselines import as_level, slice_baseline
from evals_app.services.observation import lock_statistics, row_observations
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
        return f"Run #{run.number} cannot be a baseline; pin a completed production run."
    if version is not None:
        slices = BlockStatistics.objects.filter(workflow=workflow).values_list("slices", flat=True)
        if not any(str(version.number) in found.get("workflow_version", {}) for found in slices):
            return f"Version {version.number} has no completed production run yet; run it first."
    return None


def _pinned(row: BlockStatistics, run: Run | None, version: WorkflowVersion | None) -> dict[str, Any] | None:
    if version is not None:
        found = row.slices.get("workflow_version", {}).get(str(version.number))
        return slice_baseline(found) if found else None
    if run is None:
        return None
    observation = row_observations(row).filter(run=run).first()
    if observation is None:
        return None
    return {
        name: as_level(Baseline(1, value, 0.0, value, value))
        for name, value in observed_values(observation).items()
        if value is not None
    }


def acknowledge_regression(regression: Regression, user: AbstractBaseUser | None) -> Regression:
    """Mark a regression as seen; it stays until the block recovers or somebody resolves it."""
    return _move(regression, RegressionState.ACKNOWLEDGED, "acknowledge", user)


def resolve_regression(regression: Regression, user: AbstractBaseUser | None) -> Regression:
    """Close a regression."""
    return _move(regression, RegressionState.RESOLVED, "resolve", user)


@transaction.atomic
def _move(
    regression: Regression, state: RegressionState, verb: str, user: AbstractBaseUser | None
) -> Regression:
    possible = Regression.objects.unresolved().filter(pk=regression.pk).exclude(state=state)
    moment = {f"{state}_by_id": user.pk if user else None, f"{state}_at": timezone.now()}
    moved = possible.update(state=state, **moment)
    regression.refresh_from_db()
    if moved:
        target = f"{regression.workflow.slug}/{regression.node_id} {regression.kind}"
        audit(user, f"regression.{verb}", target)
    elif regression.state != state:
        raise Refused("conflict", f"This regression is already {regression.state}.")
    return regression
