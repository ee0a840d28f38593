"""The few kernel calls that Python does not offer, each raising OSError like those it does."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

IS_LINUX = sys.platform.startswith("linux")
MACHINE = platform.machine()

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True) if IS_LINUX else None


class Unsupported(OSError):
    """This system has no such call."""


def _checked(result: int, call: str) -> int:
    """Turn a C call's -1 into the OSError it means."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")
    return result


def _library() -> ctypes.CDLL:
    if _libc is None:
        raise Unsupported(f"{sys.platform} is not Linux")
    return _libc


def prctl(option: int, argument: int = 0, pointer: object = None) -> None:
    """Change one attribute of this process."""
    _checked(
        _library().prctl(option, ctypes.c_ulong(argument), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)),
        "prctl",
    )


def unshare(flags: int) -> None:
    """Leave the namespaces named by the flags for new ones."""
    _checked(_library().unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind the descriptor."""
    _checked(_library().setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Attach a file system."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    extra = None if options is None else options.encode()
    _checked(_library().mount(*words, ctypes.c_ulong(flags), extra), f"mount {target}")


def syscall(number: int, *arguments: object) -> int:
    """Make a system call that the C library has no function for."""
    return _checked(_library().syscall(ctypes.c_long(number), *arguments), f"system call {number}")


def enter_root(path: str) -> None:
    """Make the mounted folder the root and let go of the old one, so nothing outside has a name."""
    if MACHINE not in _PIVOT_ROOT:
        raise Unsupported(f"no system call table for {MACHINE}")
    os.chdir(path)
    syscall(_PIVOT_ROOT[MACHINE], b".", b".")
    _checked(_library().umount2(b".", ctypes.c_int(MNT_DETACH)), "umount2")
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every capability of this process."""
    if MACHINE not in _CAPSET:
        raise Unsupported(f"no system call table for {MACHINE}")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall(_CAPSET[MACHINE], header, nothing)
