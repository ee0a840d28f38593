"""One block's conversation: send the job, collect what comes, stop it when time is over or nobody waits."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .inside import wire
from .inside.zygote import EXIT, NOT_STARTED
from .results import CodeLimits, CodeResult, Status

Cancelled = Callable[[], bool] | None
_CANCEL_CHECK_SECONDS = 0.1
_GRACE_SECONDS = 0.5
_LARGEST_FRAME = 64 * 1024


class ZygoteLost(Exception):
    """The zygote went away, and the block with it."""


class NotStarted(Exception):
    """The zygote works, but the system gave it no process for the block."""


class Exchange:
    """Follows one block from its job to the report of its end."""

    def __init__(
        self,
        channel: socket.socket,
        control: socket.socket,
        job: bytes,
        limits: CodeLimits,
        timeout_seconds: float,
    ) -> None:
        self._channel = channel
        self._control = control
        self._unsent = memoryview(job)
        self._limits = limits
        self._timeout_seconds = timeout_seconds
        self._started = time.monotonic()
        self._deadline = self._started + timeout_seconds
        self._unpacker = wire.Unpacker(limits.output_bytes + _LARGEST_FRAME)
        self._stdout = bytearray()
        self._frame: tuple[bytes, bytes] | None = None
        self._stop: CodeResult | None = None
        self._exit: tuple[int, int] | None = None

    def run(self, cancelled: Cancelled) -> CodeResult:
        """Talk until the process has ended; raises ZygoteLost if nobody can say how it did."""
        self._channel.setblocking(False)
        self._send()  # a job of ordinary size fits the socket at once
        while self._exit is None:
            left = max(0.0, self._deadline - time.monotonic()) if self._stop is None else 10.0
            self._step(left if cancelled is None else min(left, _CANCEL_CHECK_SECONDS))
            if self._stop is None and cancelled is not None and cancelled():
                self._give_up("cancelled", "Cancelled", "The run was cancelled.")
            if self._stop is None and time.monotonic() >= self._deadline:
                message = f"The code did not finish within {self._timeout_seconds:g} seconds and was stopped."
                self._give_up("timeout", "Timeout", message)
        while self._channel.fileno() >= 0 and self._receive():
            pass
        return self._result()

    def _step(self, seconds: float) -> None:
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        if self._channel.fileno() >= 0:
            poller.register(self._channel, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        ready = dict(poller.poll(seconds * 1000))
        events = ready.get(self._channel.fileno(), 0)
        if events & select.POLLOUT and self._unsent:
            self._send()
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._receive()
        if self._control.fileno() in ready:
            self._read_exit_report()
        elif not ready and self._stop is not None:
            raise ZygoteLost("the zygote does not answer")

    def _send(self) -> None:
        try:
            sent = self._channel.send(self._unsent[: 1 << 20])
            self._unsent = self._unsent[sent:]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")

    def _receive(self) -> bool:
        try:
            chunk = self._channel.recv(1 << 18)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._channel.close()
            return False
        try:
            frames = self._unpacker.feed(chunk)
        except wire.Malformed as error:
            self._give_up("error", "MalformedResult", f"The code's process wrote an invalid result: {error}.")
            self._channel.close()
            return False
        for kind, body in frames:
            self._take(kind, body)
        return True

    def _take(self, kind: bytes, body: bytes) -> None:
        if kind == wire.STDOUT:
            self._stdout += body
            if len(self._stdout) > 4 * self._limits.stdout_bytes:  # our own writer stops well before
                self._give_up("limit", "OutputTooLarge", "The code wrote more than it may print.")
        elif self._frame is None:
            self._frame = (kind, body)
            # All is said: what still runs has a moment to end by itself.
            self._deadline = min(self._deadline, time.monotonic() + _GRACE_SECONDS)

    def _give_up(self, status: Status, kind: str, message: str) -> None:
        """Have the process killed; the first reason counts, and a result already here counts more."""
        if self._stop is None:
            self._stop = _failed(status, kind, message)
            with contextlib.suppress(OSError):
                self._control.send(b"k")

    def _read_exit_report(self) -> None:
        report = b""
        with contextlib.suppress(OSError):
            try:
                report = self._control.recv(64)
            except ConnectionResetError:
                # Our "kill" crossed the report: the first read fails because of that, the second reads it.
                report = self._control.recv(64)
        if len(report) != EXIT.size:
            raise ZygoteLost("the zygote ended")
        status, max_rss_kb = EXIT.unpack(report)
        if status == NOT_STARTED:
            raise NotStarted(os.strerror(max_rss_kb))
        self._exit = (os.waitstatus_to_exitcode(status), max_rss_kb)

    def _result(self) -> CodeResult:
        exit_code, max_rss_kb = self._exit or (0, 0)
        if self._frame is not None:
            found = _read_frame(*self._frame, self._limits)
        else:
            found = self._stop or _explain_exit(exit_code, self._limits)
        return replace(
            found,
            stdout=self._stdout.decode("utf-8", "replace")[: self._limits.stdout_bytes],
            duration_ms=(time.monotonic() - self._started) * 1000,
            max_rss_kb=max_rss_kb,
        )


def _failed(status: Status, kind: str, message: str) -> CodeResult:
    return CodeResult(status, error_type=kind, error_message=message)


def _explain_exit(exit_code: int, limits: CodeLimits) -> CodeResult:
    if exit_code == -signal.SIGXCPU:
        return _failed("limit", "CpuLimit", "The code used up its CPU time and was stopped.")
    if exit_code == -signal.SIGXFSZ:
        message = f"The code wrote a file larger than {limits.file_bytes:,} bytes."
        return _failed("limit", "FileLimit", message)
    if exit_code < 0:
        name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else str(-exit_code)
        message = f"The code's process was ended by signal {name} before main returned."
        return _failed("error", "ProcessDied", message)
    message = f"The code's process ended with exit code {exit_code} before main returned."
    return _failed("error", "ProcessExit", message)


def _read_frame(kind: bytes, body: bytes, limits: CodeLimits) -> CodeResult:
    """Believe nothing: the block's process could have written any bytes here."""
    try:
        if kind == wire.RESULT:
            return CodeResult("ok", output=_strict_json(body))
        if kind == wire.FAILURE:
            return _read_failure(_strict_json(body), limits)
        if kind == wire.REFUSED:
            return _failed("error", "IsolationFailed", f"The code was not run: {body.decode()[:500]}.")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return _failed("error", "MalformedResult", f"The code's process wrote an invalid result: {error}.")
    return _failed("error", "MalformedResult", "The code's process wrote an invalid result.")


def _read_failure(report: Any, limits: CodeLimits) -> CodeResult:
    kind, message, line = str(report["type"]), str(report["message"]), report["line"]
    status: Status = "limit" if kind in ("MemoryError", "OutputTooLarge") else "error"
    if kind == "MemoryError":
        message = f"The code used more than {limits.memory_bytes // (1024 * 1024)} MB of memory."
    place = line if isinstance(line, int) and line > 0 else None
    return replace(_failed(status, kind, message), line=place, source_line=str(report["source"]))


def _strict_json(body: bytes) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    value = json.loads(body.decode(), parse_constant=refuse)
    if b"\\u" in body:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate has no place in any store
    return value
