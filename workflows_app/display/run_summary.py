"""A run as lists, sockets and the API show it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from workflows_app.models import Run


def iso(moment: datetime | None) -> str | None:
    """A time as every answer writes it: ISO 8601 in UTC."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def run_summary(run: Run) -> dict[str, Any]:
    """The run without its inputs and outputs."""
    return {
        "id": str(run.pk),
        "number": run.number,
        "workflow": run.workflow.slug,
        "version": run.version.number,
        "status": run.status,
        "source": run.source,
        "environment": run.environment,
        "created_at": iso(run.created_at),
        "started_at": iso(run.started_at),
        "finished_at": iso(run.finished_at),
        "duration_ms": run.duration_ms,
        "cost_usd": run.cost_usd,
        "tokens": run.tokens,
        "nodes_done": run.nodes_done,
        "eval_score": run.eval_score,
        "eval_passed": run.eval_passed,
        "eval_counts": run.eval_counts,
        "regression_count": run.regression_count,
        "error": run.error,
        "parent_run": str(run.parent_run_id) if run.parent_run_id else None,
    }
