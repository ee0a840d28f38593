"""Where a process's sockets meet: one place in the channel layer and one look at the rows for all of them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from workflows_app import live_reads
from workflows_app.feeds import RunFeed, RunsFeed, RunsViewer, RunViewer
from workflows_app.outbox import CHANGES_GROUP, outbox, run_group
from workflows_app.row_watch import RowWatch
from workflows_app.seldom import Seldom

log = structlog.get_logger("runsight.live")

JOIN_SECONDS = 2.0
# Memberships end after a day in memory, and with Redis when it was away while we joined.
REJOIN_SECONDS = 5.0


class Hub:
    """The feeds somebody watches; it starts with the first socket and stops with the last."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._run_feeds: dict[UUID, RunFeed] = {}
        self._runs_feed: RunsFeed | None = None
        self._opening: dict[RunFeed | RunsFeed, asyncio.Task[bool]] = {}
        self._channel: str | None = None
        self._joining = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._watch: RowWatch | None = None
        self._seldom = Seldom()

    async def watch_run(self, run_id: UUID, viewer: RunViewer) -> RunFeed | None:
        """Join the viewers of a run; None if there is no such run."""
        feed = self._run_feeds.get(run_id)
        if feed is None:
            feed = self._run_feeds[run_id] = RunFeed(run_id)
            self._open(feed, run_group(run_id))
        feed.viewers.add(viewer)
        return feed if await self._is_open(feed, viewer) else None

    async def watch_runs(self, viewer: RunsViewer) -> RunsFeed:
        """Join the viewers of lists."""
        feed = self._runs_feed
        if feed is None:
            feed = self._runs_feed = RunsFeed()
            self._open(feed, CHANGES_GROUP)
        feed.viewers.add(viewer)
        await self._is_open(feed, viewer)
        return feed

    async def leave(self, feed: RunFeed | RunsFeed, viewer: Any) -> None:
        """A viewer has gone; with the last one the feed goes, and with the last feed the hub rests."""
        feed.viewers.discard(viewer)
        if feed.viewers or feed not in self._opening:
            return
        self._opening.pop(feed).cancel()
        feed.close()
        if isinstance(feed, RunFeed):
            self._run_feeds.pop(feed.run_id)
            group = run_group(feed.run_id)
        else:
            self._runs_feed = None
            group = CHANGES_GROUP
        if self._channel is not None:
            await self._try(get_channel_layer().group_discard(group, self._channel))
        if not self._opening:
            self._rest()

    # Opening

    def _open(self, feed: RunFeed | RunsFeed, group: str) -> None:
        if self._watch is None:
            self._wake()
        self._opening[feed] = asyncio.create_task(self._join_and_read(feed, group))

    async def _join_and_read(self, feed: RunFeed | RunsFeed, group: str) -> bool:
        # Join, then read: what happens in between comes twice, and its number drops the repeat.
        await self._join([group])
        return await feed.open()

    async def _is_open(self, feed: RunFeed | RunsFeed, viewer: Any) -> bool:
        try:
            is_found = await asyncio.shield(self._opening[feed])
        except BaseException:
            await self.leave(feed, viewer)
            raise
        if not is_found:
            await self.leave(feed, viewer)
        return is_found

    def _wake(self) -> None:
        outbox.use_viewers_loop(self.loop)
        self._watch = RowWatch(self._look)
        self._watch.start()
        self._tasks = [asyncio.create_task(self._stay_joined())]

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        if self._watch is not None:
            self._watch.stop()
        self._watch = self._channel = None

    # The channel layer

    def _groups(self) -> list[str]:
        groups = [run_group(run_id) for run_id in self._run_feeds]
        return [*groups, CHANGES_GROUP] if self._runs_feed else groups

    async def _join(self, groups: list[str]) -> None:
        layer = get_channel_layer()
        async with self._joining:
            if self._channel is None and (channel := await self._try(layer.new_channel())) is not None:
                self._channel = channel
                self._tasks.append(asyncio.create_task(self._hear(channel)))
        for group in groups if self._channel is not None else ():
            await self._try(layer.group_add(group, self._channel))

    async def _stay_joined(self) -> None:
        while True:
            await asyncio.sleep(REJOIN_SECONDS)
            await self._join(self._groups())

    async def _try(self, call: Any) -> Any:
        """Ask the layer; when it does not answer, the rows do until it is back."""
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                return await call
        except Exception as error:  # noqa: BLE001 - whatever a layer raises
            if (left_out := self._seldom.turn()) is not None:
                log.warning(
                    "the channel layer does not answer; events come from the rows, a little later",
                    error=f"{type(error).__name__}: {error}",
                    not_logged=left_out,
                )
            return None

    async def _hear(self, channel: str) -> None:
        layer = get_channel_layer()
        while True:
            try:
                message = await layer.receive(channel)
            except Exception:
                log.exception("the channel layer failed; trying again")
                await asyncio.sleep(1)
                continue
            if message["type"] == "run.events":
                feed = self._run_feeds.get(UUID(message["run_id"]))
                if feed is not None:
                    feed.hear((seq, frame) for seq, frame in message["events"])
            elif message["type"] == "runs.changed" and self._runs_feed is not None:
                self._runs_feed.hear((run_id, workflow_id) for run_id, workflow_id in message["runs"])

    # The rows; `_look` runs in the watch's thread

    def _look(self) -> None:
        numbers = live_reads.newest_numbers(list(self._run_feeds))
        runs = live_reads.where_runs_are() if self._runs_feed is not None else None
        try:
            self.loop.call_soon_threadsafe(self._take, numbers, runs)
        except RuntimeError:  # closed without a good-bye, and every socket with it
            if self._watch is not None:
                self._watch.stop()

    def _take(self, numbers: dict[UUID, int], runs: dict[str, tuple[int, str, int]] | None) -> None:
        for run_id, seq in numbers.items():
            if (feed := self._run_feeds.get(run_id)) is not None:
                feed.catch_up(seq)
        if runs is not None and self._runs_feed is not None:
            self._runs_feed.compare(runs)


_hub: Hub | None = None


def hub() -> Hub:
    """The hub of this process's sockets, which all wait on one loop."""
    global _hub
    if _hub is None or _hub.loop is not asyncio.get_running_loop():
        _hub = Hub()
    return _hub
