"""A real HTTP server on loopback that speaks the OpenAI chat API, well or badly, as a test wants it.

    with OpenAIServer(failure(429, retry_after="1"), chat("hello")) as server:
        ...  # server.url is the base URL; server.requests is what it was asked

Each request takes the next behaviour; when they are used up, the last one (or a good answer) goes on.
"""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

Behaviour = Callable[["Seen", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Seen:
    """A request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)


def respond(
    status: int, body: Any = b"", *, headers: dict[str, str] | None = None, length: int | None = None
) -> Behaviour:
    """Answer with this status and body; `length` lies about the body's."""

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"HTTP/1.1 {status} X",
            "Connection: close",
            f"Content-Length: {len(content) if length is None else length}",
        ]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()

    return behave


def completion(
    text: Any,
    *,
    model: str = "test-model",
    prompt_tokens: int = 11,
    completion_tokens: int = 7,
    **message: Any,
) -> dict[str, Any]:
    """A chat completion's body."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }


def chat(text: str = "Hello!", **fields: Any) -> Behaviour:
    """Answer as a server should."""
    return respond(200, completion(text, **fields), headers={"Content-Type": "application/json"})


def failure(status: int, message: str = "no", *, retry_after: str | None = None, **error: Any) -> Behaviour:
    """Answer with an error in OpenAI's shape."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return respond(status, {"error": {"message": message, **error}}, headers=headers)


def slow(seconds: float) -> Behaviour:
    """Say nothing for some time, then answer well."""

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await chat()(seen, writer)

    return behave


def trickle(seconds: float) -> Behaviour:
    """Send headers, then a byte now and then, so that no single read takes long."""

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    return behave


async def hang_up(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""
    writer.transport.abort()


async def half_closed(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Promise a body, send half of it and close."""
    content = json.dumps(completion("never complete")).encode()
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content[: len(content) // 2]
    )
    await writer.drain()
    writer.close()


async def endless(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Send a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


class OpenAIServer:
    """The server, in a thread with an event loop of its own."""

    def __init__(
        self, *behaviours: Behaviour, ssl_context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.requests: list[Seen] = []
        self.left_early = threading.Event()  # a client closed the connection before it had its answer
        self.host = host
        self.port = 0
        self._behaviours = list(behaviours) or [chat()]
        self._ssl_context = ssl_context
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        scheme = "https" if self._ssl_context else "http"
        return f"{scheme}://{self.host}:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, self.host, 0, ssl=self._ssl_context)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = Seen(method, path, headers, json.loads(body) if body else None)
        self.requests.append(seen)
        behave = self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
        answering = asyncio.ensure_future(behave(seen, writer))
        leaving = asyncio.ensure_future(reader.read(1))  # clients here send one request at a time
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self.left_early.set()
                return False
            answering.result()
            return False  # one request per connection keeps the server simple
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
            if not writer.transport.is_closing():
                writer.close()
