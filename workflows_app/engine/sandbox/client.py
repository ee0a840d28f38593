"""The server's side: keeps one zygote and has every block run in a fresh fork of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .exchange import Cancelled, Exchange, NotStarted, ZygoteLost
from .inside import linux, wire
from .inside.confine import Isolation
from .results import CodeLimits, CodeResult

_START_SECONDS = 20.0
_TRIES = 3
_PAUSE_SECONDS = 0.05
_PACKETS = socket.SOCK_SEQPACKET if linux.IS_LINUX else socket.SOCK_DGRAM
_BOOT = "import sys; sys.path.insert(0, {folder!r}); from inside.zygote import main; sys.path.pop(0); main({fd}, frozenset({without!r}))"


class SandboxUnavailable(RuntimeError):
    """No zygote could be started, so no code can run."""


def harden_parent() -> bool:
    """Close this process's memory and environment to others of the same user; False where it cannot be."""
    try:
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
    except OSError:
        return False
    return True


@dataclass
class _Zygote:
    """A running zygote and the socket to ask it."""

    process: subprocess.Popen[bytes]
    door: socket.socket
    isolation: Isolation

    def end(self) -> None:
        """Let it go: it ends with the socket, and takes its blocks along."""
        self.door.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Sandbox:
    """Runs code blocks, each in a process of its own; safe to call from many threads."""

    def __init__(self, *, without: frozenset[str] = frozenset()) -> None:
        """`without` leaves out layers (namespaces, landlock, seccomp), as a lesser kernel would."""
        self._without = without
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        harden_parent()
        _all_sandboxes.add(self)

    @property
    def isolation(self) -> Isolation:
        """The layers in force; starts the zygote if need be."""
        return self._running_zygote().isolation

    @property
    def pid(self) -> int | None:
        """The zygote's process id, once there is one."""
        return self._zygote.process.pid if self._zygote else None

    def run(
        self,
        code: str,
        data: dict[str, Any],
        *,
        timeout_seconds: float,
        limits: CodeLimits = CodeLimits(),  # noqa: B008 - frozen
        cancelled: Cancelled = None,
    ) -> CodeResult:
        """Call the code's `main(data)` in a fresh process and return the result."""
        try:
            bounds = asdict(limits) | {"cpu_seconds": timeout_seconds + 1}
            text = json.dumps({"code": code, "data": data, "limits": bounds}, allow_nan=False)
        except (TypeError, ValueError) as error:
            message = f"The data for the code is not JSON: {error}."
            return CodeResult("error", error_type="BadInput", error_message=message)
        job = wire.pack(wire.JOB, text.encode())
        trouble: Exception | None = None
        # A block touches nothing outside its folder, so one that was lost with its zygote may run again.
        for attempt in range(_TRIES):
            time.sleep(attempt * _PAUSE_SECONDS)
            zygote = self._running_zygote()
            try:
                return _run_once(zygote, job, limits, timeout_seconds, cancelled)
            except ZygoteLost as lost:
                trouble = lost
                with self._lock:
                    if self._zygote is zygote:
                        zygote.process.kill()
                        self._end_zygote()
            except (NotStarted, OSError) as short:  # out of processes or descriptors: may pass
                trouble = short
        raise SandboxUnavailable(f"the code could not be run in {_TRIES} tries: {trouble}") from trouble

    def close(self) -> None:
        """End the zygote and with it every block still running."""
        with self._lock:
            self._end_zygote()

    def _running_zygote(self) -> _Zygote:
        with self._lock:
            if self._zygote is not None and self._zygote.process.poll() is not None:
                self._end_zygote()
            if self._zygote is None:
                self._zygote = _start_zygote(self._without)
                self._finalizer = weakref.finalize(self, self._zygote.end)
            return self._zygote

    def _end_zygote(self) -> None:
        self._zygote = None
        if self._finalizer is not None:
            self._finalizer()

    def _after_fork(self) -> None:
        """Reset in a forked process: a lock held by another thread would never be released."""
        self._lock = threading.Lock()
        zygote, self._zygote = self._zygote, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if zygote is not None:
            zygote.door.close()
            zygote.process.returncode = 0  # the zygote is the other process's


_all_sandboxes: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for sandbox in list(_all_sandboxes):
        sandbox._after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _start_zygote(without: frozenset[str]) -> _Zygote:
    ours, theirs = socket.socketpair(socket.AF_UNIX, _PACKETS)
    boot = _BOOT.format(folder=str(Path(__file__).parent), fd=theirs.fileno(), without=sorted(without))
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own text
            [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", boot],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise SandboxUnavailable(f"the code sandbox could not be started: {error}") from error
    finally:
        theirs.close()
    zygote = _Zygote(process, ours, Isolation())
    ours.settimeout(_START_SECONDS)
    try:
        hello = ours.recv(65536)
        zygote.isolation = Isolation(**json.loads(hello))
    except (OSError, ValueError, TypeError) as error:
        process.kill()
        zygote.end()
        raise SandboxUnavailable(f"the code sandbox did not start: {error or 'it ended at once'}") from error
    return zygote


def _run_once(
    zygote: _Zygote, job: bytes, limits: CodeLimits, timeout_seconds: float, cancelled: Cancelled
) -> CodeResult:
    channel, block_end = socket.socketpair()
    control, zygote_end = socket.socketpair(socket.AF_UNIX, _PACKETS)
    with channel, control:
        with block_end, zygote_end:
            try:
                socket.send_fds(zygote.door, [b"run"], [block_end.fileno(), zygote_end.fileno()])
            except OSError as error:
                raise ZygoteLost(str(error)) from error
        return Exchange(channel, control, job, limits, timeout_seconds).run(cancelled)
