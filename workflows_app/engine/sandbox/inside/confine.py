"""Take everything away from a freshly forked process, in the one order that works."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
from dataclasses import dataclass, field
from pathlib import Path

from . import filesystem, landlock, linux, seccomp

_HIGH_FD = 100
_SLACK_BYTES = 32 * 1024 * 1024
_FIRST_OWN_UID = 1_500_000_000
UIDS_PER_ZYGOTE = 64
_ZYGOTE_PROCESSES = 2
_MARGIN = 32  # for what the server starts later


@dataclass(frozen=True)
class Isolation:
    """Which layers hold on this system; every block gets all of them or does not run."""

    namespaces: str = ""  # "root", "user" or none
    own_uid: int = 0  # first of the unprivileged users that blocks run as
    landlock: int = 0
    seccomp: bool = False
    no_new_privs: bool = False
    missing: dict[str, str] = field(default_factory=dict)  # why a layer is missing


def first_own_uid(zygote_pid: int) -> int:
    """Choose unprivileged users that no account has, inside what this container maps; 0 for none."""
    if os.geteuid() != 0:
        return 0
    try:
        with open("/proc/self/uid_map", encoding="ascii") as ranges:  # noqa: PTH123
            highest = max(int(line.split()[0]) + int(line.split()[2]) - 1 for line in ranges)
    except (OSError, ValueError):
        highest = 65533
    if highest >= _FIRST_OWN_UID + 4_194_304 * UIDS_PER_ZYGOTE:
        return _FIRST_OWN_UID + zygote_pid % 4_194_304 * UIDS_PER_ZYGOTE
    return highest - 2048 + zygote_pid % 24 * UIDS_PER_ZYGOTE if highest > 10_000 else 0


@dataclass
class IsolationTools:
    """What the layers need, made once in the zygote so that no block pays for it."""

    grants: list[tuple[str, int]]
    program: ctypes.Array[ctypes.c_char] | None
    others: int  # processes of the same user that count towards a block's limit

    @classmethod
    def prepare(cls, isolation: Isolation) -> IsolationTools:
        """Look up the paths and assemble the filter."""
        has_namespaces = bool(isolation.namespaces)
        program = seccomp.build(has_own_pids=True, pid=0) if isolation.seccomp and has_namespaces else None
        others = _ZYGOTE_PROCESSES if has_namespaces else _threads_of_user(os.geteuid()) + _MARGIN
        grants = filesystem.grants(has_private_root=has_namespaces)
        return cls(grants, program, others)


@dataclass
class Cell:
    """Where one block is put: its folder (None: a memory file system), its user (0: ours)."""

    isolation: Isolation
    tools: IsolationTools
    folder: str | None
    uid: int
    counted_too: int


def _threads_of_user(uid: int) -> int:
    """Count what the kernel counts for RLIMIT_NPROC."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                count += len(os.listdir(process / "task"))  # noqa: PTH208
        except OSError:
            continue  # it ended meanwhile
    return count


def confine(cell: Cell, limits: dict[str, int]) -> None:
    """Apply the isolation to this process; any step that fails raises."""
    isolation, tools, folder, uid = cell.isolation, cell.tools, cell.folder, cell.uid
    if folder is None:
        folder = filesystem.mount_own_folder(limits["folder_bytes"])
    elif uid:
        os.chown(folder, uid, uid)
    os.chdir(folder)
    os.umask(0o077)
    _limit(limits, limits["processes"] + cell.counted_too)
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if isolation.namespaces:
        linux.drop_capabilities()
    if linux.IS_LINUX:
        # A change of user clears the death signal, so it comes after.
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if isolation.no_new_privs:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if isolation.landlock:
        landlock.restrict(isolation.landlock, [*tools.grants, (folder, landlock.OWN)])
    if isolation.seccomp:
        seccomp.install(tools.program or seccomp.build(has_own_pids=False, pid=os.getpid()))


def close_all_but(channel_fd: int) -> int:
    """Keep the channel at a high number and point the standard three at nothing."""
    os.dup2(channel_fd, _HIGH_FD, inheritable=False)
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.closerange(3, _HIGH_FD)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(_HIGH_FD + 1, 65536 if soft == resource.RLIM_INFINITY else min(soft, 1 << 20))
    return _HIGH_FD


def _limit(limits: dict[str, int], processes: int) -> None:
    cpu = max(1, math.ceil(limits["cpu_seconds"]))  # the kernel knows whole seconds only
    wanted = {
        "RLIMIT_CPU": (cpu, cpu + 1),
        "RLIMIT_FSIZE": (limits["file_bytes"], limits["file_bytes"]),
        "RLIMIT_NOFILE": (limits["open_files"], limits["open_files"]),
        "RLIMIT_NPROC": (processes, processes),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_MEMLOCK": (0, 0),
        "RLIMIT_MSGQUEUE": (0, 0),
        # The slack lets a block that ran out of memory still say so.
        "RLIMIT_AS": (limits["memory_bytes"], limits["memory_bytes"] + _SLACK_BYTES),
    }
    for name, (soft, hard) in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue  # not a limit of this system
        _, ceiling = resource.getrlimit(kind)  # none can be raised
        if ceiling == resource.RLIM_INFINITY:
            ceiling = hard
        try:
            resource.setrlimit(kind, (min(soft, ceiling), min(hard, ceiling)))
        except (ValueError, OSError):
            if linux.IS_LINUX:
                raise  # elsewhere some limits exist in name only


def use_memory_slack() -> None:
    """Raise the memory limit to its ceiling, to report that it was reached."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
