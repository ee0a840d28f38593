"""Waiting for runs to end: any number of callers, one query at a time, no thread and no connection each.

A run that ends in this process wakes its callers; one of another process is found by looking.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary, ref

import structlog
from django.db import DatabaseError, connection
from django.db.models import Q
from django.db.models.functions import Now

from workflows_app.models import TERMINAL, Run
from workflows_app.signals import run_finished

log = structlog.get_logger("runsight.waiting")

POLL_SECONDS = 0.1
# Observations and regressions follow the end of a run at once; callers wait no longer than this for them.
GRACE = timedelta(seconds=2)


class _Poller:
    """Reads the table for every run that is waited for on one event loop."""

    def __init__(self) -> None:
        self.loop = ref(asyncio.get_running_loop())  # which would live as long as this otherwise
        self.has_ended = asyncio.Event()  # a run that is waited for, in this process
        # Receivers are called in the order in which they connected: what acts on the end of a run has by then.
        run_finished.connect(self._on_run_finished)
        self.waiting: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)
        self.task: asyncio.Task[None] | None = None

    async def wait(self, run_id: UUID, seconds: float) -> bool:
        event = asyncio.Event()
        self.waiting[run_id].add(event)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        finally:
            self.waiting[run_id].discard(event)
            if not self.waiting[run_id]:
                del self.waiting[run_id]
        return True

    async def _poll(self) -> None:
        while self.waiting:
            try:
                ended = await asyncio.to_thread(ended_among, list(self.waiting))
            except DatabaseError:
                log.exception("cannot look for ended runs; trying again")
                ended = []
            for run_id in ended:
                for event in self.waiting.get(run_id, ()):
                    event.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.has_ended.wait(), POLL_SECONDS)
            self.has_ended.clear()

    def _on_run_finished(self, sender: Any, run: Run, **_: Any) -> None:
        """Look at once; called in the thread that ended the run."""
        loop = self.loop()
        if run.pk in self.waiting and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.has_ended.set)


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Poller] = WeakKeyDictionary()


async def until_ended(run_id: UUID, seconds: float) -> bool:
    """Return when a run has ended and its end was acted on; False if the time was over first."""
    loop = asyncio.get_running_loop()
    if loop not in _pollers:
        _pollers[loop] = _Poller()
    return await _pollers[loop].wait(run_id, seconds)


def ended_among(run_ids: list[UUID]) -> Iterable[UUID]:
    """Those of the runs that are over, read on a connection that is closed at once."""
    is_late = Q(finished_at__lt=Now() - GRACE)
    over = Q(status__in=TERMINAL) & (Q(observed_at__isnull=False) | is_late)
    try:
        return list(Run.objects.filter(over, pk__in=run_ids).values_list("pk", flat=True))
    finally:
        connection.close()
