"""The zygote: a small, single-threaded interpreter that forks one process per block.

It is started by exec with an empty environment and holds no secret. Requests come as packets with
two descriptors: the block's channel (handed on, never read here) and a control socket on which one
byte from the server, or its end, means "kill", and on which the zygote reports how the block ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import time
from dataclasses import asdict, dataclass, field
from typing import NoReturn

from . import block, confine, filesystem, linux, probe

# What most code imports, and no more: each mapped library makes every fork slower.
PRELOADED = (
    "base64 bisect calendar collections.abc contextlib copy csv dataclasses datetime decimal difflib enum fractions "
    "functools hashlib heapq html itertools json math operator pathlib random re statistics string struct tempfile "
    "textwrap time traceback types typing unicodedata urllib.parse uuid warnings zlib zoneinfo _strptime"
)
EXIT = struct.Struct("=iq")  # wait status, peak memory in kilobytes
NOT_STARTED = -1  # in place of a wait status; the error number follows
_TICK_MS = 1000


@dataclass
class Job:
    """A block that is running."""

    pid: int
    control: socket.socket
    slot: int
    folder: str | None


@dataclass
class Zygote:
    """The loop: fork on request, kill on request, report every end."""

    door: socket.socket
    isolation: confine.Isolation
    parent_fd: int | None
    parent_pid: int
    pid_namespace: int | None
    tools: confine.IsolationTools
    jobs: dict[int, Job] = field(default_factory=dict)

    def run(self) -> NoReturn:
        """Serve until the server is gone; then end every block."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        poller = select.poll()
        poller.register(self.door, select.POLLIN)
        poller.register(reader, select.POLLIN)
        if self.parent_fd is not None:
            poller.register(self.parent_fd, select.POLLIN)
        while True:
            ready = dict(poller.poll(_TICK_MS))
            is_orphaned = not self.isolation.namespaces and os.getppid() != self.parent_pid
            if self.parent_fd in ready or is_orphaned:
                self._end()
            if reader in ready:
                os.read(reader, 4096)
            self._reap(poller)
            for job in list(self.jobs.values()):
                if job.control.fileno() in ready:
                    with contextlib.suppress(OSError):
                        job.control.recv(16)
                    self._kill(job)
                    poller.unregister(job.control)
            if self.door.fileno() in ready:
                self._accept(poller)

    def _end(self) -> NoReturn:
        for job in self.jobs.values():
            self._kill(job)
        self._kill_strays()
        for job in self.jobs.values():
            with contextlib.suppress(OSError):
                os.waitpid(job.pid, 0)
            if job.folder is not None:
                filesystem.remove_own_folder(job.folder)
        os._exit(0)

    def _accept(self, poller: select.poll) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self.door, 16, 2)
        except OSError:
            return
        if not message:
            self._end()
        if len(fds) != 2:
            for fd in fds:
                os.close(fd)
            return
        channel, control = socket.socket(fileno=fds[0]), socket.socket(fileno=fds[1])
        channel.setblocking(True)  # the server's library may have made a time-out the default of new sockets
        try:
            job = self._fork(channel, control)
        except OSError as error:
            with contextlib.suppress(OSError):
                control.send(EXIT.pack(NOT_STARTED, error.errno or 0))
            control.close()
        else:
            self.jobs[job.pid] = job
            poller.register(control, select.POLLIN)
        finally:
            channel.close()

    def _fork(self, channel: socket.socket, control: socket.socket) -> Job:
        taken = {job.slot for job in self.jobs.values()}
        slot = next(number for number in range(len(taken) + 1) if number not in taken)
        uid = self.isolation.own_uid + slot % confine.UIDS_PER_ZYGOTE if self.isolation.own_uid else 0
        folder = None if self.isolation.namespaces else filesystem.make_own_folder()
        zygote_pid = os.getpid()
        pid = fork_into_namespace(self.pid_namespace)
        if pid == 0:
            try:
                os.setsid()  # a signal to its own group would reach the zygote, also from a namespace
                # Without a user of its own a block's processes are counted together with others'.
                counted_too = 0 if uid else self.tools.others + len(taken)
                cell = confine.Cell(self.isolation, self.tools, folder, uid, counted_too)
                block.serve(cell, channel, zygote_pid)
            finally:
                os._exit(1)
        return Job(pid, control, slot, folder)

    def _kill(self, job: Job) -> None:
        with contextlib.suppress(OSError):
            os.kill(job.pid, signal.SIGKILL)
        if not self.isolation.namespaces:
            with contextlib.suppress(OSError):
                os.killpg(job.pid, signal.SIGKILL)

    def _reap(self, poller: select.poll) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self.jobs.pop(pid, None)
            if job is None:
                continue
            if not self.isolation.namespaces:
                self._kill(job)
                self._kill_strays()
            with contextlib.suppress(KeyError):
                poller.unregister(job.control)
            if job.folder is not None:
                filesystem.remove_own_folder(job.folder)
            with contextlib.suppress(OSError):
                job.control.send(
                    EXIT.pack(status, usage.ru_maxrss if linux.IS_LINUX else usage.ru_maxrss // 1024)
                )
            job.control.close()

    def _kill_strays(self) -> None:
        """End what a block left behind: the zygote is the subreaper, so it is our child now."""
        if self.isolation.namespaces:
            return  # the kernel ends a PID namespace with its first process
        for _ in range(100):
            strays = [pid for pid in children_of(os.getpid()) if pid not in self.jobs]
            if not strays:
                return
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, 0)


def children_of(pid: int) -> list[int]:
    """List a process's children; none where the system does not say."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as names:  # noqa: PTH123
            return [int(name) for name in names.read().split()]
    except OSError:
        return []


def fork_into_namespace(own: int | None) -> int:
    """Fork; with a PID namespace of its own for the child where `own` holds ours."""
    if own is None:
        return os.fork()
    linux.unshare(linux.CLONE_NEWPID)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:  # also where no process could be made
            linux.setns(own, linux.CLONE_NEWPID)
    return pid


def main(door_fd: int, without: frozenset[str]) -> NoReturn:
    """Find out what this system offers, set it up, say so, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent_pid = os.getppid()
    try:
        parent_fd = os.pidfd_open(parent_pid)
    except (AttributeError, OSError):
        parent_fd = None
    door = socket.socket(fileno=door_fd)
    filesystem.remove_abandoned_folders()
    isolation = probe.find_isolation(without)
    for name in PRELOADED.split():
        importlib.import_module(name)
    block.warm_up()
    if isolation.namespaces:
        probe.enter_namespaces(isolation.namespaces)
        _become_first_process(parent_pid, parent_fd is not None)
        pid_namespace = probe.build_inside()
    else:
        pid_namespace = None
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
    door.send(json.dumps(asdict(isolation)).encode())
    zygote = Zygote(
        door, isolation, parent_fd, parent_pid, pid_namespace, confine.IsolationTools.prepare(isolation)
    )
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection in a block would copy every page it visits
    zygote.run()


def _become_first_process(parent_pid: int, is_parent_watched: bool) -> None:
    """Go on as process 1 of the new PID namespace; the one outside only waits for it."""
    pid = os.fork()
    if pid == 0:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    os.closerange(3, 65536)
    if is_parent_watched:
        os.waitpid(pid, 0)
    else:
        while os.getppid() == parent_pid and not os.waitpid(pid, os.WNOHANG)[0]:
            time.sleep(1)
    os._exit(0)
