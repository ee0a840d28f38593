"""What the viewers of one thing share: its newest frames, read and written once per process."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import structlog
from django.db import DatabaseError

from workflows_app import metrics
from workflows_app.live import reads as live_reads
from workflows_app.live.outbox import CHANGES_GROUP, run_group
from workflows_app.live.reads import read
from workflows_app.log_throttle import LogThrottle

log = structlog.get_logger("runsight.live")
_throttle = LogThrottle()

MOST_FRAMES = 1_000
MOST_CHARS = 2_000_000
GATHER_SECONDS = 0.25
RETRY_SECONDS = 1.0


class RunViewer(Protocol):
    """A socket that watches one run."""

    woken: asyncio.Event


class Update(NamedTuple):
    """A run as it is now, and the frame that describes it."""

    run: dict[str, Any]
    frame: str


class RunsViewer(Protocol):
    """A socket that watches a list of runs."""

    workflow_id: int | None

    def offer(self, run_id: str, update: Update) -> None: ...


class RunFeed:
    """The newest events of one run as frames.

    Events are numbered under the run's row lock, so whoever sees a row sees all before it: reading
    `seq > last` never skips an event that is still being committed.
    """

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.group = run_group(run_id)
        self.slug = ""
        self.viewers: set[RunViewer] = set()
        self.floor = 0  # every event after this number is in `_frames`
        self.last_seq = 0
        self._frames: deque[tuple[int, str]] = deque()
        self._chars = 0
        self._is_open = False
        self._pulling: asyncio.Task[None] | None = None
        self._is_behind = False

    async def open(self) -> bool:
        """Read the newest rows; False if there is no such run."""
        head = await read(live_reads.run_head, self.run_id)
        if head is None:
            return False
        self.slug, newest = head
        self.floor = self.last_seq = max(0, newest - live_reads.BATCH)
        await self._pull()
        self._is_open = True
        if self._is_behind:
            self._pulling = asyncio.create_task(self._pull_until_current())
        return True

    def receive(self, events: Iterable[tuple[int, str | None]]) -> None:
        """Take what the channel layer brought; a gap, or a number without its frame, is read from the rows."""
        for seq, frame in events:
            if seq == self.last_seq + 1 and frame is not None and self._is_open and self._pulling is None:
                self._add(seq, frame)
            else:
                self.catch_up(seq)
        self._wake()

    def catch_up(self, seq: int) -> None:
        """Read the rows up to this number at least, unless they were read."""
        if seq <= self.last_seq:
            return
        self._is_behind = True
        if self._pulling is None and self._is_open:
            metrics.GAPS_REPLAYED.inc()
            self._pulling = asyncio.create_task(self._pull_until_current())

    def after(self, seq: int) -> list[tuple[int, str]] | None:
        """The frames after a number; None if it lies before what is kept."""
        if seq < self.floor:
            return None
        return list(takewhile(lambda entry: entry[0] > seq, reversed(self._frames)))[::-1]

    def close(self) -> None:
        if self._pulling is not None:
            self._pulling.cancel()

    async def _pull_until_current(self) -> None:
        try:
            while self._is_behind:
                self._is_behind = False
                try:
                    await self._pull()
                except DatabaseError as error:  # it may be back in a moment, and nobody else would try again
                    self._is_behind = True
                    _throttle.warning(log, "could not read events; trying again", error)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._pulling = None

    async def _pull(self) -> None:
        while True:
            batch = await read(live_reads.frames_after, self.run_id, self.slug, self.last_seq)
            for seq, frame in batch:
                if seq > self.last_seq:
                    self._add(seq, frame)
            self._wake()
            if len(batch) < live_reads.BATCH:
                return

    def _add(self, seq: int, frame: str) -> None:
        self._frames.append((seq, frame))
        self.last_seq = seq
        self._chars += len(frame)
        while len(self._frames) > MOST_FRAMES or (self._chars > MOST_CHARS and len(self._frames) > 1):
            self.floor, oldest = self._frames.popleft()
            self._chars -= len(oldest)

    def _wake(self) -> None:
        for viewer in self.viewers:
            viewer.woken.set()


class RunsFeed:
    """Changed runs, gathered for a moment, read once, and offered to every list that shows them."""

    group = CHANGES_GROUP

    def __init__(self) -> None:
        self.viewers: set[RunsViewer] = set()
        # Reads take turns, so that what is offered later is never older.
        self._reading = asyncio.Lock()
        self._changed: dict[str, None] = {}
        self._known: dict[str, tuple[int, str, int]] = {}
        self._sent: dict[str, str] = {}  # the last frame of each run
        self._newest: dict[int | None, dict[str, dict[str, Any]]] = {}  # by workflow; None: of all
        self._gathering: asyncio.Task[None] | None = None

    async def open(self) -> bool:
        """Note where all runs are; what differs later has changed."""
        self._known = await read(live_reads.where_runs_are)
        return True

    def receive(self, runs: Iterable[tuple[str, int]]) -> None:
        """Take what the channel layer brought: runs, each with its workflow."""
        watched = {viewer.workflow_id for viewer in self.viewers}
        for run_id, workflow_id in runs:
            if None in watched or workflow_id in watched:
                self._changed[run_id] = None
        if self._changed and self._gathering is None:
            self._gathering = asyncio.create_task(self._offer_changes())

    def compare(self, found: dict[str, tuple[int, str, int]]) -> None:
        """Take what the rows hold: whatever differs from the last look has changed."""
        before, self._known = self._known, found
        self.receive([(run_id, state[2]) for run_id, state in found.items() if before.get(run_id) != state])

    async def snapshot(self, viewer: RunsViewer, pending: dict[str, Update]) -> str:
        """The frame that shows a list to a new viewer; what was pending is older, and dropped."""
        async with self._reading:
            runs = await read(live_reads.snapshot, viewer.workflow_id)
            pending.clear()
            self._newest[viewer.workflow_id] = {run["id"]: run for run in runs}
        return _frame("snapshot", {"runs": runs})

    def renewed(self, viewer: RunsViewer, pending: dict[str, Update]) -> str:
        """The frame that replaces a list, with all that is pending; no row is read for it."""
        runs = self._newest[viewer.workflow_id] | {run_id: update.run for run_id, update in pending.items()}
        return _frame("snapshot", {"runs": sorted(runs.values(), key=_created, reverse=True)})

    def close(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()

    async def _offer_changes(self) -> None:
        try:
            while self._changed:
                await asyncio.sleep(GATHER_SECONDS)
                try:
                    async with self._reading:
                        await self._read_and_offer()
                except DatabaseError as error:
                    _throttle.warning(log, "could not read events; trying again", error)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._gathering = None

    async def _read_and_offer(self) -> None:
        changed = list(self._changed)
        found = await read(live_reads.summaries, changed)
        for run_id in changed:
            del self._changed[run_id]
        for run_id, workflow_id, summary in found:
            frame = _frame("run_updated", summary)
            if self._sent.get(run_id) == frame:  # most changes come from the layer and from the rows
                continue
            self._sent[run_id] = frame
            self._renew(workflow_id, summary)
            for viewer in self.viewers:
                if viewer.workflow_id in (None, workflow_id):
                    viewer.offer(run_id, Update(summary, frame))
        while len(self._sent) > MOST_FRAMES:
            del self._sent[next(iter(self._sent))]

    def _renew(self, workflow_id: int, run: dict[str, Any]) -> None:
        """Keep the newest runs of every list that somebody watches."""
        watched = {viewer.workflow_id for viewer in self.viewers}
        self._newest = {key: runs for key, runs in self._newest.items() if key in watched}
        for key in {None, workflow_id} & self._newest.keys():
            runs = self._newest[key] | {run["id"]: run}
            newest = sorted(runs.values(), key=_created, reverse=True)[: live_reads.LATEST_RUNS]
            self._newest[key] = {one["id"]: one for one in newest}


def _created(run: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(run["created_at"])


def _frame(event: str, data: dict[str, Any]) -> str:
    return json.dumps({"event": event, "data": data}, separators=(",", ":"))
