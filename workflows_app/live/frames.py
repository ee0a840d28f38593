"""A run and its events as lists, sockets and the API show them."""

from __future__ import annotations

import json
from typing import Any

from workflows_app.display.formats import iso
from workflows_app.models import Run, RunEvent


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


def as_message(row: RunEvent, slug: str) -> dict[str, Any]:
    """The event as sockets and the API show it."""
    return {
        "seq": row.seq,
        "event": row.event,
        "run_id": str(row.run_id),
        "workflow": slug,
        "at": iso(row.at),
        "data": row.data,
    }


def as_frame(row: RunEvent, slug: str) -> str:
    """The event as it goes over the wire, written once for all viewers."""
    message = as_message(row, slug)
    frame = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        frame.encode()
    except UnicodeEncodeError:  # half a surrogate pair: legal in JSON, but only when escaped
        return json.dumps(message)
    return frame
