"""What sockets read: run in a few threads of their own, so that a slow page never holds up a viewer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async

from workflows_app.live.frames import as_frame, run_summary
from workflows_app.models import Run, RunEvent, Workflow

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

BATCH = 500
LATEST_RUNS = 20
LOOKED_AT = 50
MOST_ACTIVE = 500

_pool = ThreadPoolExecutor(4, thread_name_prefix="live-read")


async def read(
    function: Callable[Parameters, Answer], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Answer:
    """Call a function that reads the database, in one of our threads."""
    call = database_sync_to_async(function, thread_sensitive=False, executor=_pool)
    answer: Answer = await call(*args, **kwargs)
    return answer


def run_head(run_id: UUID) -> tuple[str, int] | None:
    """The workflow's slug and the newest number of a run, if there is such a run."""
    return Run.objects.filter(pk=run_id).values_list("workflow__slug", "last_seq").first()


def frames_after(run_id: UUID, slug: str, after: int) -> list[tuple[int, str]]:
    """The next events as numbered frames, at most a batch."""
    rows = RunEvent.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:BATCH]
    return [(row.seq, as_frame(row, slug)) for row in rows]


def newest_numbers(run_ids: Iterable[UUID]) -> dict[UUID, int]:
    """The newest number of each of these runs."""
    return dict(Run.objects.filter(pk__in=list(run_ids)).values_list("pk", "last_seq"))


def workflow_id_of(slug: str) -> int | None:
    return Workflow.objects.filter(slug=slug).values_list("pk", flat=True).first()


def where_runs_are() -> dict[str, tuple[int, str, int]]:
    """Number, status and workflow of the runs that may change: the newest and all that are under way."""
    fields = ("pk", "last_seq", "status", "workflow_id")
    newest = Run.objects.order_by("-created_at").values_list(*fields)[:LOOKED_AT]
    active = Run.objects.active().values_list(*fields)[:MOST_ACTIVE]
    return {
        str(pk): (seq, status, workflow) for rows in (newest, active) for pk, seq, status, workflow in rows
    }


def summaries(run_ids: Iterable[str]) -> list[tuple[str, int, dict[str, Any]]]:
    """Id, workflow and summary of each of these runs."""
    runs = Run.objects.for_list().filter(pk__in=list(run_ids))
    return [(str(run.pk), run.workflow_id, run_summary(run)) for run in runs]


def snapshot(workflow_id: int | None) -> list[dict[str, Any]]:
    """The newest runs of a workflow, or of all, newest first."""
    runs = Run.objects.for_list()
    if workflow_id is not None:
        runs = runs.filter(workflow_id=workflow_id)
    return [run_summary(run) for run in runs.order_by("-created_at")[:LATEST_RUNS]]
