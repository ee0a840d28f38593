"""Many runs of a workflow, written straight into the tables, with the observations and statistics they leave."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone

from evals_app.models import Observation, Regression
from evals_app.services.observation import rebuild_statistics
from workflows_app.models import Run, RunStatus, Workflow, WorkflowVersion


def add_history(
    workflow: Workflow,
    scores: list[float],
    *,
    block: str = "shout",
    also: Sequence[str] = (),
    version: WorkflowVersion | None = None,
    until: datetime | None = None,
) -> list[Run]:
    """One completed run a score, an hour apart, newest last; below one the first assertion has failed."""
    version = version or workflow.current_version
    first = workflow.last_run_number
    end = until or timezone.now()
    runs = []
    for index, score in enumerate(scores):
        at = end - timedelta(hours=len(scores) - index)
        runs.append(
            Run(
                workflow=workflow,
                version=version,
                number=first + index + 1,
                status=RunStatus.COMPLETED,
                created_at=at,
                started_at=at,
                finished_at=at,
                observed_at=at,
                duration_ms=900.0,
                cost_usd=0.002,
                eval_score=score,
                eval_passed=score >= 1,
                nodes_done=1,
            )
        )
    Run.objects.bulk_create(runs)
    for name in (block, *also):
        _observe(workflow, name, runs)
    workflow.last_run_number = first + len(runs)
    workflow.save(update_fields=["last_run_number"])
    rebuild_statistics(workflow)
    return runs


def _observe(workflow: Workflow, block: str, runs: list[Run]) -> None:
    from evals_app.block_assertions import plan_for

    plan = plan_for(runs[0].version, block)
    known = Observation.objects.filter(workflow=workflow, node_id=block).count()
    Observation.objects.bulk_create(
        Observation(
            workflow=workflow,
            node_id=block,
            number=known + index,
            run=run,
            run_number=run.number,
            at=run.created_at,
            score=run.eval_score,
            passed=run.eval_passed,
            cost_usd=run.cost_usd,
            latency_ms=run.duration_ms,
            workflow_version=run.version.number,
            assertions={key: run.eval_passed or bool(place) for place, key in enumerate(plan.keys)}
            if plan
            else {},
        )
        for index, run in enumerate(runs, start=1)
    )


def add_regression(run: Run, block: str = "shout", **fields: object) -> Regression:
    """An open regression that a run brought to light."""
    defaults: dict[str, object] = {
        "workflow": run.workflow,
        "node_id": block,
        "kind": "assertion_regression",
        "assertion": "contains#abc123",
        "since_number": 1,
        "since_run": run,
        "since_run_number": run.number,
        "found_run": run,
        "found_run_number": run.number,
        "suspected": {"workflow_version": run.version.number, "soul_version": None},
        "before": {"count": 40, "mean": 0.98},
        "after": {"count": 20, "mean": 0.61},
        "evidence": 21.0,
    }
    return Regression.objects.create(**{**defaults, **fields})
