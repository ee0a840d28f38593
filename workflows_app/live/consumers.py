"""Websockets: replay what the viewer missed, then relay. No rule and no write lives here."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http.cookie import parse_cookie
from django.http.request import split_domain_port, validate_host

from workflows_app.live import reads as live_reads
from workflows_app.live.feeds import RunFeed, RunsFeed, Update
from workflows_app.live.hub import hub
from workflows_app.live.reads import read
from workflows_app.security import access

log = structlog.get_logger("runsight.live")

FAILED, NOT_UNDERSTOOD, NOT_LOGGED_IN, NOT_ALLOWED, NOT_FOUND, TOO_SLOW = 1011, 4400, 4401, 4403, 4404, 4408
REASONS = {
    FAILED: "something went wrong here; connect again",
    NOT_LOGGED_IN: "not logged in",
    NOT_ALLOWED: f"this needs the permission {access.SEE}",
    NOT_FOUND: "there is no such thing",
    TOO_SLOW: "read too slowly; connect again with ?after=",
}
PING_SECONDS = 20.0
ACCESS_SECONDS = 60.0
COALESCE_SECONDS = 1.0
# Too slow: a frame is not taken for so long, or a viewer who had caught up is so far behind and not taking frames.
STALL_SECONDS = 15.0
SLUGGISH_SECONDS = 1.0
LONGEST_QUEUE = 2_000
LONGEST_LIST_QUEUE = 20
LONGEST_REASON_BYTES = 120  # 123 by the protocol
PING = '{"event":"ping"}'


class RefusedSocket(Exception):
    """Ends the socket with a code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason or REASONS[code])
        self.code = code


class LiveConsumer(AsyncWebsocketConsumer):
    """What every socket does: check access and origin, ping, give up on slow viewers, refuse with a code."""

    # The hub listens to the channel layer, once for all sockets of the process.
    channel_layer_alias = ""

    feed: RunFeed | RunsFeed | None = None
    is_over = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.woken = asyncio.Event()
        try:
            await super().__call__(scope, receive, send)
        finally:  # also when the server stops without closing the socket
            self.is_over = True
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            await self.leave()

    async def connect(self) -> None:
        self.headers = {name: value.decode("latin-1") for name, value in self.scope["headers"]}
        if not self._is_host_ours() or not self._is_origin_right():
            await self.close()  # before accept: the browser gets HTTP 403
            return
        await self.accept()
        self.tasks = [asyncio.create_task(self._guarded(self._serve()))]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Viewers only watch; anything but an answer to our ping is not understood."""
        try:
            frame = json.loads(text_data or "")
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, dict) or frame.get("event") not in ("ping", "pong"):
            await self._end(NOT_UNDERSTOOD, 'send nothing, or {"event": "pong"}')

    async def prepare(self) -> None:
        """Find what is watched and join its viewers."""
        raise RefusedSocket(NOT_FOUND)

    async def follow(self) -> None:
        """Send what is already there, then what comes."""

    async def deliver(self, frame: str) -> float:
        """Send one frame; the seconds the viewer took to take it."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self.send(text_data=frame)
        except TimeoutError:
            raise RefusedSocket(TOO_SLOW) from None
        return time.monotonic() - began

    async def leave(self) -> None:
        if self.feed is not None:
            feed, self.feed = self.feed, None
            await hub().leave(feed, self)

    # From connecting to closing

    async def _serve(self) -> None:
        await read(self._check_access)
        await self.prepare()
        self.tasks.append(asyncio.create_task(self._guarded(self._stay_awake())))
        await self.follow()

    async def _stay_awake(self) -> None:
        checked = time.monotonic()
        while True:
            await asyncio.sleep(PING_SECONDS)
            if time.monotonic() - checked >= ACCESS_SECONDS:
                checked = time.monotonic()
                await read(self._check_access)
            await self.deliver(PING)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RefusedSocket as refused:
            await self._end(refused.code, str(refused))
        except OSError:  # how a server says that the viewer has gone
            await self.leave()
        except Exception:
            log.exception("a socket failed", path=self.scope["path"])
            await self._end(FAILED, REASONS[FAILED])

    async def _end(self, code: int, reason: str) -> None:
        """Close once; nothing is sent after it."""
        if self.is_over:
            return
        self.is_over = True
        current = asyncio.current_task()
        for task in self.tasks:
            if task is not current:
                task.cancel()
        await self.leave()
        await self.close(code=code, reason=reason.encode()[:LONGEST_REASON_BYTES].decode(errors="ignore"))

    # Who is there

    def _is_host_ours(self) -> bool:
        """As for pages: another name that leads here is a rebound one."""
        host, _ = split_domain_port(self.headers.get(b"host", ""))
        return bool(host) and validate_host(host, settings.ALLOWED_HOSTS)

    def _is_origin_right(self) -> bool:
        """A browser's cookie counts only from our own pages; a client with a token needs no Origin."""
        origin = self.headers.get(b"origin")
        if origin is None or b"authorization" in self.headers:
            return True
        host = self.headers.get(b"host", "")
        return origin in settings.CSRF_TRUSTED_ORIGINS or _is_same_origin(origin, host)

    def _check_access(self) -> None:
        user: AbstractBaseUser | None
        token = None
        if (header := self.headers.get(b"authorization")) is not None:
            scheme, _, key = header.partition(" ")
            token = access.usable_token(key.strip()) if scheme.lower() == "token" else None
            user = token.user if token else None
        else:
            key = parse_cookie(self.headers.get(b"cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
            user = access.session_user(key) if key else None
        if user is None:
            raise RefusedSocket(NOT_LOGGED_IN)
        if not access.may(user, access.SEE, token):
            raise RefusedSocket(NOT_ALLOWED)


def _is_same_origin(origin: str, host: str) -> bool:
    """Whether an origin is the address that was requested, with or without its default port."""
    try:
        page = urlsplit(origin)
        here = urlsplit(f"{page.scheme}://{host}")
        default = {"http": 80, "https": 443}[page.scheme]
        ports = page.port or default, here.port or default
        return bool(page.hostname) and page.hostname == here.hostname and ports[0] == ports[1]
    except (ValueError, KeyError):  # "null", or no address at all
        return False


class RunConsumer(LiveConsumer):
    """One run: its whole history from `?after=`, then live, without gap or double."""

    async def prepare(self) -> None:
        query = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        after = query.get("after", ["0"])[-1]
        if not (after.isascii() and after.isdecimal() and len(after) <= 12):
            raise RefusedSocket(
                NOT_UNDERSTOOD, f"after={after[:20]!r} is not valid; use the last seq you have seen"
            )
        self.seen = int(after)
        run_id = self.scope["url_route"]["kwargs"]["run_id"]
        feed = self.feed = await hub().watch(RunFeed(run_id), self)
        if feed is None:
            raise RefusedSocket(NOT_FOUND)
        if self.seen > feed.last_seq:  # the feed may be behind the rows for a moment
            newest = (await read(live_reads.newest_numbers, [run_id])).get(run_id, 0)
            if self.seen > newest:
                raise RefusedSocket(NOT_UNDERSTOOD, f"after={after} is beyond the last, {newest}")
            feed.catch_up(newest)

    async def follow(self) -> None:
        feed = self.feed
        assert isinstance(feed, RunFeed)
        had_caught_up = False
        while True:
            self.woken.clear()
            frames = feed.after(self.seen)
            if frames is None:  # older than what viewers share
                frames = await read(live_reads.frames_after, feed.run_id, feed.slug, self.seen)
            for seq, frame in frames:
                took = await self.deliver(frame)
                self.seen = seq
                if had_caught_up and took > SLUGGISH_SECONDS and feed.last_seq - seq > LONGEST_QUEUE:
                    raise RefusedSocket(TOO_SLOW)
            if not frames:
                had_caught_up = True
                await self.woken.wait()


class RunsConsumer(LiveConsumer):
    """Many runs: a snapshot, then each changed run, at most one frame a second."""

    workflow_id: int | None = None  # None: those of every workflow

    async def prepare(self) -> None:
        self.pending: dict[str, Update] = {}
        self.feed = await hub().watch(RunsFeed(), self)

    def offer(self, run_id: str, update: Update) -> None:
        """A run changed: its newest state waits in the place of an older one."""
        self.pending[run_id] = update
        self.woken.set()

    async def follow(self) -> None:
        feed = self.feed
        assert isinstance(feed, RunsFeed)
        await self.deliver(await feed.snapshot(self, self.pending))
        while True:
            await asyncio.sleep(COALESCE_SECONDS)
            self.woken.clear()
            if not self.pending:
                await self.woken.wait()
            if len(self.pending) > LONGEST_LIST_QUEUE:
                # One frame a second would fall ever further behind: send the whole list.
                frame = feed.renewed(self, self.pending)
                self.pending.clear()
                await self.deliver(frame)
            else:
                await self.deliver(self.pending.pop(next(iter(self.pending))).frame)


class WorkflowConsumer(RunsConsumer):
    """The runs of one workflow."""

    async def prepare(self) -> None:
        self.workflow_id = await read(live_reads.workflow_id_of, self.scope["url_route"]["kwargs"]["slug"])
        if self.workflow_id is None:
            raise RefusedSocket(NOT_FOUND)
        await super().prepare()
