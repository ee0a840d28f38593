"""Messages on their way to the channel layer: queued by any thread, sent by one task on an event loop."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import deque
from typing import Any
from uuid import UUID

import structlog
from channels.layers import InMemoryChannelLayer, get_channel_layer

from workflows_app import metrics
from workflows_app.log_throttle import LogThrottle

log = structlog.get_logger("runsight.live")

CHANGES_GROUP = "runs"
LONGEST_OUTBOX = 5_000  # the oldest are dropped first: for a lost message a viewer reads the rows
LARGEST_BATCH_CHARS = 64_000
SEND_SECONDS = 5.0
LAST_CHANCE_SECONDS = 1.0


def run_group(run_id: UUID | str) -> str:
    return f"run.{UUID(str(run_id)).hex}"


class Outbox:
    """Hands events to the channel layer without ever making the thread that wrote them wait."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, int, int, str | None]] = deque(maxlen=LONGEST_OUTBOX)
        # Set by the hub: the loop on which this process's sockets wait.
        self.viewers_loop: asyncio.AbstractEventLoop | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._sending: asyncio.Task[None] | None = None
        self._scheduled_on: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._is_empty = threading.Event()
        self._is_empty.set()
        self.throttle = LogThrottle()

    @property
    def has_listeners(self) -> bool:
        """Whether anybody could receive a message: an in-memory layer reaches this process's sockets only."""
        if self.viewers_loop is not None and self.viewers_loop.is_running():
            return True
        return not isinstance(get_channel_layer(), InMemoryChannelLayer)

    def put(self, run_id: UUID, workflow_id: int, seq: int, frame: str | None) -> None:
        """Queue one event; without a frame it travels as its number only."""
        with self._lock:
            self._waiting.append((str(run_id), workflow_id, seq, frame))
            self._is_empty.clear()
            if self._scheduled_on is not None and self._scheduled_on.is_running():
                return
            self._scheduled_on = self._loop()
            try:
                self._scheduled_on.call_soon_threadsafe(self._start)
            except RuntimeError:  # the loop was closed in this moment, and its viewers with it
                self._scheduled_on = None

    def flush(self, timeout: float = LAST_CHANCE_SECONDS) -> bool:
        """Wait until all is sent; a command that ends would lose its last events."""
        return self._is_empty.wait(timeout)

    def _loop(self) -> asyncio.AbstractEventLoop:
        """The sockets' loop if there is one: an in-memory layer wakes no other, and Redis needs just any."""
        if self.viewers_loop is not None and self.viewers_loop.is_running():
            return self.viewers_loop
        if self._own_loop is None:
            self._own_loop = asyncio.new_event_loop()
            threading.Thread(target=self._own_loop.run_forever, name="events", daemon=True).start()
            atexit.register(self.flush)
        return self._own_loop

    def _start(self) -> None:
        # Kept, because the loop itself holds tasks only weakly.
        self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._scheduled_on = None
                    self._is_empty.set()
                    return
                taken = list(self._waiting)
                self._waiting.clear()
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send_batch(taken)
                metrics.EVENTS_SENT.inc(len(taken))
            except Exception as error:  # noqa: BLE001 - whatever a layer raises: the rows have the events
                message = "the channel layer did not take events; viewers read them from the rows"
                self.throttle.warning(log, message, error)


async def send_batch(taken: list[tuple[str, int, int, str | None]]) -> None:
    """One message per run with its frames, and one that names all runs that changed."""
    layer = get_channel_layer()
    by_run: dict[str, list[tuple[int, str | None]]] = {}
    for run_id, _, seq, frame in taken:
        by_run.setdefault(run_id, []).append((seq, frame))
    for run_id, entries in by_run.items():
        if sum(len(frame or "") for _, frame in entries) > LARGEST_BATCH_CHARS:
            entries = [(entries[-1][0], None)]
        message: dict[str, Any] = {"type": "run.events", "run_id": run_id, "events": entries}
        await layer.group_send(run_group(run_id), message)
    changed = {run_id: workflow_id for run_id, workflow_id, _, _ in taken}
    await layer.group_send(CHANGES_GROUP, {"type": "runs.changed", "runs": list(changed.items())})


outbox = Outbox()
