"""What the blocks of this process work with: event loops, providers kept open, the sandbox and threads for code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.conf import settings
from django.db import connection

from workflows_app.clock import current_story
from workflows_app.credentials import ProviderAccess
from workflows_app.engine.providers import Provider, ProviderSettings, make_provider, provider_class
from workflows_app.engine.sandbox import Sandbox

T = TypeVar("T")

MOST_CODE_AT_ONCE = 32


class Workbench:
    """Shared by all runs that this process executes."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        self.threads = ThreadPoolExecutor(MOST_CODE_AT_ONCE, thread_name_prefix="code")
        self._providers: dict[tuple[str, ProviderAccess | None, bool], Provider] = {}
        self._idle_loops: list[asyncio.AbstractEventLoop] = []

    @contextmanager
    def loop(self) -> Iterator[asyncio.AbstractEventLoop]:
        """An event loop for one run. Loops are handed on, so that connections to providers stay open."""
        loop = self._idle_loops.pop() if self._idle_loops else asyncio.new_event_loop()
        try:
            yield loop
        finally:
            self._idle_loops.append(loop)

    def provider(self, name: str, access: ProviderAccess | None) -> Provider:
        """The provider of that name, kept open between calls; `LookupError` if there is none."""
        is_story = current_story() is not None
        key = (name, access, is_story)
        if key not in self._providers:
            kind = access.kind if access else name
            self._providers[key] = make_provider(kind, _settings(access, provider_class(kind), is_story))
        return self._providers[key]

    def close(self) -> None:
        """Give everything back; only when no run is being executed."""
        self.threads.shutdown(wait=True, cancel_futures=True)
        # In a thread of its own: whoever stops us may be inside an event loop.
        closing = threading.Thread(target=self._close_loops, name="close-loops")
        closing.start()
        closing.join()
        self.sandbox.close()

    def _close_loops(self) -> None:
        while self._idle_loops:
            loop = self._idle_loops.pop()
            for provider in self._providers.values():
                loop.run_until_complete(provider.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _settings(access: ProviderAccess | None, kind: type[Provider], is_story: bool) -> ProviderSettings:
    return ProviderSettings(
        base_url=access.base_url if access else "",
        api_key=access.key if access else "",
        allow_private=settings.RUNSIGHT_ALLOW_PRIVATE_PROVIDERS,
        # Demo answers take the time they claim to take, except where a story is told.
        options={"sleep": not is_story} if kind.is_demo else {},
    )


async def in_thread(work: Callable[[], T]) -> T:
    """Await blocking work in a thread of its own: child runs nest, so a bounded pool could wait for itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(deliver: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(lambda: None if done.done() else deliver())

    def target() -> None:
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - delivered to the awaiting block
            failure = error
            settle(lambda: done.set_exception(failure))
        else:
            settle(lambda: done.set_result(result))
        finally:
            connection.close()

    threading.Thread(target=target, name="child-run", daemon=True).start()
    return await done
