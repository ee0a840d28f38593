"""A run's history: a numbered row first, then a message to whoever watches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction

from workflows_app import clock, rows
from workflows_app.models import Run, RunEvent
from workflows_app.outbox import outbox

# A larger event travels as its number only, and the consumer reads the row.
LARGEST_FRAME_CHARS = 16_000

# What a run in memory learns from its row with each number it takes.
LEARNED = "last_seq, status, cost_usd, prompt_tokens, completion_tokens"


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
    """Take the next `count` sequence numbers of a run and return the first; the run learns its status and totals.

    One conditional UPDATE: it locks the run's row, checks the fence, adds to totals and changes fields,
    so that totals and history move together.
    """
    assignments = ["last_seq = last_seq + %s"]
    values: list[Any] = [count]
    for column, amount in (add or {}).items():
        assignments.append(f"{column} = COALESCE({column}, 0) + %s")
        values.append(amount)
    for column, value in (change or {}).items():
        assignments.append(f"{column} = %s")
        field: Any = Run._meta.get_field(column)
        values.append(rows.binder(field, connection.vendor)(value))
    where = "id = %s"
    values.append(rows.key_of(run))
    if fence is not None:
        where += " AND fence = %s AND status = 'running'"
        values.append(fence)
    # Table and columns are this file's and the model's own words; everything else is a parameter.
    statement = (
        f'UPDATE "{Run._meta.db_table}" SET {", ".join(assignments)} WHERE {where} RETURNING {LEARNED}'  # noqa: S608
    )
    row = rows.execute(statement, values).fetchone()
    if row is None:
        raise LeaseLost(f"Run {run.pk} is no longer ours to write.")
    last_seq, run.status, run.cost_usd, run.prompt_tokens, run.completion_tokens = row
    return int(last_seq) - count + 1


def append(run: Run, seq: int, event: str, **data: Any) -> RunEvent:
    """Write one event under a number from `advance`, and tell viewers once it is committed."""
    row = RunEvent(run_id=run.pk, seq=seq, event=event, data=data, at=clock.now())
    rows.insert(row)
    slug, workflow_id = run.workflow.slug, run.workflow_id
    transaction.on_commit(lambda: publish(row, slug, workflow_id), robust=True)
    return row


def as_message(row: RunEvent, slug: str) -> dict[str, Any]:
    """The event as sockets and the API show it."""
    return {
        "seq": row.seq,
        "event": row.event,
        "run_id": str(row.run_id),
        "workflow": slug,
        "at": row.at.isoformat().replace("+00:00", "Z"),
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


def publish(row: RunEvent, slug: str, workflow_id: int) -> None:
    """Nudge every viewer of this run; it costs the writer microseconds, and losing it loses nothing."""
    if not outbox.is_heard:
        return
    frame = as_frame(row, slug)
    is_small = len(frame) <= LARGEST_FRAME_CHARS
    outbox.put(row.run_id, workflow_id, row.seq, frame if is_small else None)
