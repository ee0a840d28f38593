"""`code`: the user's `main(data)` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from workflows_app.engine.blocks.base import FREE, Block
from workflows_app.engine.definition import CodeBlockDef
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.sandbox.client import SandboxUnavailable
from workflows_app.engine.values.outputs import code_output


class CodeBlock(Block[CodeBlockDef]):
    """Runs the code in the sandbox, which kills it with all it started when time is up or nobody waits."""

    type = "code"
    keeps_own_time = True

    async def run(self, timeout_seconds: float) -> BlockResult:
        sandbox = self.tools.sandbox
        if sandbox is None:
            raise BlockFailure("no_sandbox", "This run has no sandbox for code.")
        run = partial(sandbox.run, self.block.code, self.context.data(), timeout_seconds=timeout_seconds)
        try:
            result = await self._in_thread(run)
        except SandboxUnavailable as error:
            raise BlockFailure(
                "sandbox_unavailable", f"The code could not be run: {error}.", is_retryable=True
            ) from error
        details: dict[str, Any] = {"max_rss_kb": result.max_rss_kb}
        if result.stdout:
            details["stdout"] = result.stdout
        if result.status != "ok":
            raise BlockFailure(
                "timeout" if result.status == "timeout" else result.error_type or "error",
                result.error or "The code did not finish.",
                is_retryable=result.status in ("error", "timeout"),
                details=details,
            )
        output, exit_handle = code_output(result.output)
        return BlockResult(output=output, exit_handle=exit_handle, cost_usd=FREE, details=details)

    async def _in_thread(self, run: Callable[..., Any]) -> Any:
        """Wait in a thread; a cancelled wait ends the process before the cancellation goes on."""
        stop, started = threading.Event(), threading.Event()
        is_cancelled = self.tools.is_cancelled

        def work() -> Any:
            started.set()
            if stop.is_set():
                return None  # nobody waits any more; no process is needed
            return run(cancelled=lambda: stop.is_set() or is_cancelled())

        try:
            future = asyncio.get_running_loop().run_in_executor(self.tools.threads, work)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                stop.set()
                if started.is_set():
                    with contextlib.suppress(Exception):
                        await asyncio.shield(future)
                raise
        finally:
            stop.set()  # a signal may end the wait at any point, even before it has begun
