"""Landlock: the kernel's own list of paths that a process and its children may touch."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from . import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_ASK_VERSION = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _MAKE_SYM = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 12
_TRUNCATE = 1 << 14

READ = _READ_FILE | _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE
OWN = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM | _TRUNCATE

# Bits of LANDLOCK_ACCESS_FS_* that each version of the interface knows: all are handled, so what
# no rule grants is refused.
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_ALL_TCP = 0b11  # bind and connect
_ALL_SCOPES = 0b11  # abstract unix sockets and signals
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


def version() -> int:
    """Say which version of the interface the kernel speaks; 0 for none."""
    try:
        return linux.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    except OSError:
        return 0


def restrict(abi: int, grants: Iterable[tuple[str, int]]) -> None:
    """Refuse this process every path but those granted, and every TCP port."""
    handled = (1 << _FS_BITS.get(abi, 16)) - 1
    attributes = struct.pack("=Q", handled)
    if abi >= 4:
        attributes += struct.pack("=Q", _ALL_TCP)
    if abi >= 6:
        attributes += struct.pack("=Q", _ALL_SCOPES)
    ruleset = linux.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path, access in grants:
            _grant(ruleset, path, access & handled)
        linux.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there, or not to be seen, needs no grant
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slower, and this is on the way of every block
            access &= _FILE_ONLY
        rule = struct.pack("=Qi", access, fd)
        linux.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(fd)
