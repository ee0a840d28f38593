"""What the blocks of this process share: event loops, open providers, the sandbox and threads for code.

And whether a provider can be called at all.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection

from workflows_app import models
from workflows_app.clock import simulated_clock
from workflows_app.engine.providers import Provider, ProviderAccess, ProviderError, make_provider
from workflows_app.engine.sandbox.client import Sandbox
from workflows_app.security import credentials
from workflows_app.security.secrets import SecretUnreadableError

T = TypeVar("T")

MOST_CODE_AT_ONCE = 32
CHECK_SECONDS = 20.0


class Resources:
    """Shared by all runs that this process executes."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        self.threads = ThreadPoolExecutor(MOST_CODE_AT_ONCE, thread_name_prefix="code")
        self._providers: dict[tuple[str, ProviderAccess | None, bool], Provider] = {}
        self._idle_loops: list[asyncio.AbstractEventLoop] = []

    @contextmanager
    def loop(self) -> Iterator[asyncio.AbstractEventLoop]:
        """An event loop for one run. Loops are used again, so that connections to providers stay open."""
        loop = self._idle_loops.pop() if self._idle_loops else asyncio.new_event_loop()
        try:
            yield loop
        finally:
            self._idle_loops.append(loop)

    def provider(self, name: str, access: ProviderAccess | None) -> Provider:
        """The provider of that name, kept open between calls; `LookupError` if there is none."""
        is_simulated = simulated_clock() is not None
        key = (name, access, is_simulated)
        if key not in self._providers:
            # Demo answers take the time they claim to take, except in the demo data's simulated past.
            self._providers[key] = open_provider(name, access, sleep=not is_simulated)
        return self._providers[key]

    def close(self) -> None:
        """Release everything; only when no run is being executed."""
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


def open_provider(name: str, access: ProviderAccess | None, **options: Any) -> Provider:
    """A provider under this installation's rule about private addresses; `LookupError` if there is none."""
    return make_provider(name, access, allow_private=settings.RUNSIGHT_ALLOW_PRIVATE_PROVIDERS, **options)


async def in_thread(work: Callable[[], T]) -> T:
    """Await blocking work in a thread of its own: child runs nest, so a shared pool could wait for itself."""

    def work_and_disconnect() -> T:
        try:
            return work()
        finally:
            connection.close()

    thread = ThreadPoolExecutor(1, thread_name_prefix="child-run")
    call = contextvars.copy_context().run
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, call, work_and_disconnect)
    finally:
        thread.shutdown(wait=False)


def check_provider(row: models.Provider) -> tuple[bool, str]:
    """Whether a provider answers as it is set up, and its answer or error in one sentence without secrets."""

    async def answer(access: ProviderAccess) -> str:
        provider = open_provider(access.kind, access, timeout_seconds=CHECK_SECONDS)
        try:
            return await asyncio.wait_for(provider.check(), CHECK_SECONDS)
        finally:
            await provider.aclose()

    try:
        sentence = async_to_sync(answer)(credentials.access_of(row))
    except (ProviderError, LookupError, ValueError, SecretUnreadableError) as error:
        return False, credentials.redactor().redact(str(error))
    except TimeoutError:
        return False, f"No answer within {CHECK_SECONDS:.0f} seconds."
    return True, credentials.redactor().redact(sentence)
