"""Where a process's sockets meet: they share one channel of the channel layer and one thread that reads the rows."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from workflows_app.live import reads as live_reads
from workflows_app.live.feeds import RunFeed, RunsFeed
from workflows_app.live.outbox import CHANGES_GROUP, outbox, run_group
from workflows_app.live.poller import RowWatch
from workflows_app.log_throttle import LogThrottle

log = structlog.get_logger("runsight.live")

JOIN_SECONDS = 2.0
# Memberships end after a day in memory, and with Redis when it was away while we joined.
REJOIN_SECONDS = 5.0

Feed = TypeVar("Feed", RunFeed, RunsFeed)


class Hub:
    """The feeds somebody watches; it starts with the first socket and stops with the last."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._feeds: dict[str, RunFeed | RunsFeed] = {}  # by the group that brings its messages
        self._opening: dict[str, asyncio.Task[bool]] = {}
        self._channel: str | None = None
        self._joining = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._watch: RowWatch | None = None
        self._throttle = LogThrottle()

    async def watch(self, new: Feed, viewer: Any) -> Feed | None:
        """Join the viewers of a feed, of the one that is open already if there is one; None if its run does not exist."""
        group = new.group
        if group not in self._feeds:
            if self._watch is None:
                self._start()
            self._feeds[group] = new
            self._opening[group] = asyncio.create_task(self._join_and_read(new))
        feed = cast("Feed", self._feeds[group])
        feed.viewers.add(viewer)
        is_found = False
        try:
            is_found = await asyncio.shield(self._opening[group])
        finally:  # also when opening it failed, or the viewer has gone meanwhile
            if not is_found:
                await self.leave(feed, viewer)
        return feed if is_found else None

    async def leave(self, feed: RunFeed | RunsFeed, viewer: Any) -> None:
        """Remove a viewer; with its last viewer a feed is closed, and with the last feed the hub stops."""
        feed.viewers.discard(viewer)
        if feed.viewers or self._feeds.get(feed.group) is not feed:
            return
        del self._feeds[feed.group]
        self._opening.pop(feed.group).cancel()
        feed.close()
        if self._channel is not None:
            await self._try(get_channel_layer().group_discard(feed.group, self._channel))
        if not self._feeds:
            self._stop()

    def _start(self) -> None:
        outbox.viewers_loop = self.loop
        self._watch = RowWatch(self._look)
        self._watch.start()
        self._tasks = [asyncio.create_task(self._stay_joined())]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        if self._watch is not None:
            self._watch.stop()
        self._watch = self._channel = None

    # The channel layer

    async def _join_and_read(self, feed: RunFeed | RunsFeed) -> bool:
        # Join, then read: what happens in between comes twice, and its number drops the repeat.
        await self._join([feed.group])
        return await feed.open()

    async def _join(self, groups: list[str]) -> None:
        layer = get_channel_layer()
        async with self._joining:
            if self._channel is None and (channel := await self._try(layer.new_channel())) is not None:
                self._channel = channel
                self._tasks.append(asyncio.create_task(self._receive(channel)))
        for group in groups if self._channel is not None else ():
            await self._try(layer.group_add(group, self._channel))

    async def _stay_joined(self) -> None:
        while True:
            await asyncio.sleep(REJOIN_SECONDS)
            await self._join(list(self._feeds))

    async def _try(self, call: Any) -> Any:
        """Call the layer; while it does not answer, events come from the rows."""
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                return await call
        except Exception as error:  # noqa: BLE001 - whatever a layer raises
            message = "the channel layer does not answer; events come from the rows, a little later"
            self._throttle.warning(log, message, error)
            return None

    async def _receive(self, channel: str) -> None:
        layer = get_channel_layer()
        while True:
            try:
                message = await layer.receive(channel)
            except Exception:
                log.exception("the channel layer failed; trying again")
                await asyncio.sleep(1)
                continue
            is_of_run = message["type"] == "run.events"
            feed = self._feeds.get(run_group(message["run_id"]) if is_of_run else CHANGES_GROUP)
            if feed is not None:
                feed.receive(message["events" if is_of_run else "runs"])

    # The rows; `_look` runs in the watch's thread

    def _look(self) -> None:
        feeds = list(self._feeds.values())
        numbers = live_reads.newest_numbers([feed.run_id for feed in feeds if isinstance(feed, RunFeed)])
        runs = live_reads.where_runs_are() if CHANGES_GROUP in self._feeds else None
        try:
            self.loop.call_soon_threadsafe(self._take, numbers, runs)
        except RuntimeError:  # the loop was closed, and every socket with it
            if self._watch is not None:
                self._watch.stop()

    def _take(self, numbers: dict[UUID, int], runs: dict[str, tuple[int, str, int]] | None) -> None:
        for feed in self._feeds.values():
            if isinstance(feed, RunFeed):
                feed.catch_up(numbers.get(feed.run_id, 0))
            elif runs is not None:
                feed.compare(runs)


_hub: Hub | None = None


def hub() -> Hub:
    """The hub of this process's sockets, which all wait on one loop."""
    global _hub
    if _hub is None or _hub.loop is not asyncio.get_running_loop():
        _hub = Hub()
    return _hub
