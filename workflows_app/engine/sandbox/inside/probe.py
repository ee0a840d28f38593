"""Find out, by trying in throw-away processes, which layers this system offers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from . import confine, filesystem, landlock, linux, seccomp

_SHARED = (
    linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_NEWPID
)
_NOBODY = 65534
_FINE = "fine"


def find_isolation(without: frozenset[str] = frozenset()) -> confine.Isolation:
    """Choose the strongest set of layers that works here, leaving out those named."""
    uid = confine.first_own_uid(os.getpid())
    missing = dict.fromkeys(without, "switched off")
    if not linux.IS_LINUX:
        missing = dict.fromkeys(("namespaces", "landlock", "seccomp"), "not offered by this operating system")
        return confine.Isolation(own_uid=uid, missing=missing)
    namespaces = "" if "namespaces" in without else _namespaces(missing)
    if namespaces == "user":
        uid = 0  # only one user is mapped there
    privs = _error_of(lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)) is None
    abi = landlock.version()
    attempts: dict[str, Callable[[], None]] = {
        "landlock": lambda: _try_landlock(abi),
        "seccomp": _try_seccomp,
    }
    if uid and not namespaces:
        attempts["imports"] = partial(_try_imports, uid, filesystem.standard_library())
    for name, attempt in attempts.items():
        if name not in without and (error := _error_of(attempt)) is not None:
            missing[name] = error
    abi = 0 if "landlock" in missing else abi
    return confine.Isolation(namespaces, uid, abi, "seccomp" not in missing, privs, missing)


def _namespaces(missing: dict[str, str]) -> str:
    kinds = ("root", "user") if os.geteuid() == 0 else ("user",)
    for kind in kinds:
        error = _error_of(partial(_try_namespaces, kind))
        if error is None:
            missing.pop("namespaces", None)
            return kind
        missing.setdefault("namespaces", error)
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
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_NOBODY} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{_NOBODY} {gid} 1")


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
    if not abi:
        raise linux.Unsupported("not offered by this kernel")
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(abi, [("/usr", landlock.READ)])


def _try_seccomp() -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.build(has_own_pids=True, pid=os.getpid()))


def _demand(attempt: Callable[[], None]) -> None:
    error = _error_of(attempt)
    if error is not None:
        raise OSError(error)


def _error_of(attempt: Callable[[], None]) -> str | None:
    """Try it in a forked process, so that it leaves no trace here; returns what went wrong."""
    reader, writer = os.pipe()
    try:
        pid = os.fork()
        if pid == 0:
            _attempt(attempt, writer)
        os.close(writer)
        writer = -1
        answer = os.read(reader, 1000).decode(errors="replace")
        os.waitpid(pid, 0)
    except OSError as error:
        return str(error)
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    return None if answer == _FINE else answer or "the attempt was killed"


def _attempt(attempt: Callable[[], None], writer: int) -> NoReturn:
    answer = "the attempt failed"
    try:
        signal.alarm(5)
        attempt()
        answer = _FINE
    except Exception as error:  # noqa: BLE001 - sent to the one who asked
        answer = str(error)
    finally:
        os.write(writer, answer.encode())
        os._exit(0)
