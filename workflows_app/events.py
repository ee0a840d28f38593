"""A run's history: a numbered row first, then a message to whoever watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from workflows_app import clock
from workflows_app.live.frames import as_frame
from workflows_app.live.outbox import outbox
from workflows_app.models import Run, RunEvent, RunStatus
from workflows_app.storage import totals
from workflows_app.storage.statements import update_returning

# A larger event travels as its number only, and the consumer reads the row.
LARGEST_FRAME_CHARS = 16_000

# What a run in memory takes over from its row with each event.
RETURNED = ("last_seq", "status", "cost_usd", "prompt_tokens", "completion_tokens")


class LeaseLost(Exception):
    """The run belongs to someone else now, or is over; nothing was written."""


def advance(
    run: Run,
    *,
    fence: int | None = None,
    count: int = 1,
    add: Mapping[str, float] | None = None,
    change: Mapping[str, Any] | None = None,
) -> int:
    """Take the next `count` sequence numbers of a run and return the first; the run takes over its status and totals.

    One conditional UPDATE: it locks the run's row, checks the fence, adds to totals and changes fields,
    so that totals and history move together.
    """
    row = update_returning(
        run,
        RETURNED,
        add={"last_seq": count, **(add or {})},
        change=change,
        only_if=None if fence is None else {"fence": fence, "status": RunStatus.RUNNING},
    )
    if row is None:
        raise LeaseLost(f"Run {run.pk} is no longer ours to write.")
    last_seq, run.status, run.cost_usd, run.prompt_tokens, run.completion_tokens = row
    if totals.SUMMED_FIELDS & {*(add or ()), *(change or ())}:
        totals.run_changed(run)
    return int(last_seq) - count + 1


def append(run: Run, seq: int, event: str, **data: Any) -> RunEvent:
    """Write one event under a number from `advance`, and send it to viewers once it is committed."""
    row = RunEvent.objects.create(run_id=run.pk, seq=seq, event=event, data=data, at=clock.now())
    slug, workflow_id = run.workflow.slug, run.workflow_id
    transaction.on_commit(lambda: publish(row, slug, workflow_id), robust=True)
    return row


def publish(row: RunEvent, slug: str, workflow_id: int) -> None:
    """Send an event to every viewer of its run; if the message is lost, they find the row."""
    if not outbox.has_listeners:
        return
    frame = as_frame(row, slug)
    is_small = len(frame) <= LARGEST_FRAME_CHARS
    outbox.put(row.run_id, workflow_id, row.seq, frame if is_small else None)
