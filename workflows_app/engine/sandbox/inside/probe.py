"""Find out, by trying in throw-away processes, which layers this system offers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from . import confine, filesystem, landlock, linux, seccomp

_SHARED = (
    linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_NEWPID
)
_NOBODY = 65534
_FINE = "fine"


def find_plan(without: frozenset[str] = frozenset()) -> confine.Plan:
    """Choose the strongest set of layers that works here, leaving out those named."""
    uid = confine.first_own_uid(os.getpid())
    faults = dict.fromkeys(without, "switched off")
    if not linux.IS_LINUX:
        faults = dict.fromkeys(("namespaces", "landlock", "seccomp"), "not offered by this operating system")
        return confine.Plan(own_uid=uid, faults=faults)
    namespaces = "" if "namespaces" in without else _namespaces(faults)
    if namespaces == "user":
        uid = 0  # only one user is mapped there
    privs = _fault(lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)) is None
    abi = landlock.version()
    if "landlock" not in without:
        _note(faults, "landlock", _fault(lambda: _try_landlock(abi)) if abi else "not offered by this kernel")
    if "seccomp" not in without:
        _note(faults, "seccomp", _fault(_try_seccomp))
    abi = 0 if "landlock" in faults else abi
    if uid and not namespaces:
        _note(faults, "imports", _fault(partial(_try_imports, uid, filesystem.standard_library())))
    return confine.Plan(namespaces, uid, abi, "seccomp" not in faults, privs, faults)


def _note(faults: dict[str, str], name: str, fault: str | None) -> None:
    if fault is not None:
        faults[name] = fault


def _namespaces(faults: dict[str, str]) -> str:
    kinds = ("root", "user") if os.geteuid() == 0 else ("user",)
    for kind in kinds:
        fault = _fault(partial(_try_namespaces, kind))
        if fault is None:
            faults.pop("namespaces", None)
            return kind
        faults.setdefault("namespaces", fault)
    return ""


def enter_namespaces(kind: str) -> None:
    """Leave the server's namespaces; without root, through a user namespace of our own."""
    if kind == "root":
        linux.unshare(_SHARED)
        return
    if os.geteuid() == 0:
        _become_ordinary()
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER | _SHARED)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_NOBODY} {uid} 1")
    _write("/proc/self/gid_map", f"{_NOBODY} {gid} 1")


def _become_ordinary() -> None:
    """Leave root for good: the kernel exempts it from the limit on processes even without capabilities."""
    uid = confine.first_own_uid(os.getpid())
    if not uid:
        raise OSError("no unprivileged user to change to")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # otherwise our own uid_map is root's


def build_inside() -> int:
    """As process 1 of the namespaces: enter the private root; returns our PID namespace."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    filesystem.enter_private_root()
    return own


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _try_namespaces(kind: str) -> None:
    """Go the whole way a block goes: enter, fork, build, fork twice into new PID namespaces, mount."""
    enter_namespaces(kind)
    _demand(_try_inside)


def _try_inside() -> None:
    own = build_inside()
    for _ in range(2):
        linux.unshare(linux.CLONE_NEWPID)
        _demand(_try_block)
        linux.setns(own, linux.CLONE_NEWPID)


def _try_block() -> None:
    filesystem.mount_own_folder(1 << 20)
    linux.drop_capabilities()


def _try_imports(uid: int, paths: list[str]) -> None:
    os.setresuid(uid, uid, uid)
    for path in paths:
        os.listdir(path)  # noqa: PTH208


def _try_landlock(abi: int) -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(abi, [("/usr", landlock.READ)])


def _try_seccomp() -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    program = seccomp.build(has_own_pids=True, pid=os.getpid())
    if program is None:
        raise linux.Unsupported("no system call table for this machine")
    seccomp.install(program)


def _demand(attempt: Callable[[], None]) -> None:
    fault = _fault(attempt)
    if fault is not None:
        raise OSError(fault)


def _fault(attempt: Callable[[], None]) -> str | None:
    """Try it in a forked process, so that it leaves no trace here; returns what went wrong."""
    reader, writer = os.pipe()
    try:
        pid = os.fork()
        if pid == 0:
            _attempt(attempt, writer)
        os.close(writer)
        writer = -1
        said = os.read(reader, 1000).decode(errors="replace")
        os.waitpid(pid, 0)
    except OSError as error:
        return str(error)
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    return None if said == _FINE else said or "the attempt was killed"


def _attempt(attempt: Callable[[], None], writer: int) -> NoReturn:
    said = "the attempt failed"
    try:
        signal.alarm(5)
        attempt()
        said = _FINE
    except Exception as error:  # noqa: BLE001 - told to the one who asked
        said = str(error)
    finally:
        os.write(writer, said.encode())
        os._exit(0)
