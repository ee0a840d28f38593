"""A system call filter in plain BPF: what no code block needs is refused by the kernel."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence

from . import linux

_LOAD, _JUMP, _JUMP_EQUAL, _JUMP_SET, _AND, _RETURN = 0x20, 0x05, 0x15, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH = 0, 4
_FILTER_MODE = 2
_X32_BIT = 0x40000000
_NAMESPACE_FLAGS = 0x7E020000
_CLONE_THREAD = 0x00010000
_SOCK_STREAM, _SOCK_TYPE_MASK = 1, 0xF

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64); None where the architecture has no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # other programs, and other processes' memory
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # the network; socketpair stays, asyncio needs it
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    # memory that no limit counts, or that outlives the block
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # wide kernel surface and administration
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "personality": (135, 92),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
}
_CLONE, _CLONE3, _SOCKETPAIR, _PRCTL, _PRLIMIT = (56, 220), (435, 435), (53, 199), (157, 167), (302, 261)
_FORKS: tuple[tuple[int | None, int | None], ...] = ((57, None), (58, None))
_OWN_PID_ONLY: tuple[tuple[int, int], ...] = (
    (62, 129),  # kill
    (200, 130),  # tkill
    (234, 131),  # tgkill
    (129, 138),  # rt_sigqueueinfo
    (297, 240),  # rt_tgsigqueueinfo
    (434, 434),  # pidfd_open
    (203, 122),  # sched_setaffinity
    (144, 119),  # sched_setscheduler
    (142, 118),  # sched_setparam
    (314, 274),  # sched_setattr
)
# Priorities of a group's or user's processes, and signals to what a descriptor names.
_REACH_OTHERS: tuple[tuple[int, int], ...] = (
    (141, 140),  # setpriority
    (251, 30),  # ioprio_set
    (424, 424),  # pidfd_send_signal
)
# A descriptor's owner is signalled for it; the last two are the same as requests to a socket.
_FCNTL, _IOCTL = (72, 25), (16, 29)
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 10, 15, 0x8901, 0x8902


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(index: int) -> bytes:
    return _op(_LOAD, 16 + 8 * index)


def _refuse(code: int = errno.EPERM) -> bytes:
    return _op(_RETURN, _ERRNO | code)


def _rule(number: int | None, body: list[bytes]) -> list[bytes]:
    """Run the body for one system call, then go on with the next rule."""
    if number is None:
        return []
    return [_op(_JUMP_EQUAL, number, 0, len(body) + 1), *body, _op(_LOAD, _NUMBER)]


def _refuse_all(numbers: Sequence[int | None]) -> list[bytes]:
    """Send many calls to one refusal: the kernel compiles the filter for each block, so it is short."""
    known = [number for number in numbers if number is not None]
    tests = [_op(_JUMP_EQUAL, number, len(known) - place) for place, number in enumerate(known)]
    return [*tests, _op(_JUMP, 1), _refuse()]


def build(*, has_own_pids: bool, pid: int) -> ctypes.Array[ctypes.c_char]:
    """Make the filter; raises where this machine's system calls are not known.

    Without a PID namespace nothing could be sure to end what a block forks, so it may not fork,
    and may signal and schedule only itself.
    """
    if linux.MACHINE not in _AUDIT_ARCH:
        raise linux.Unsupported("no system call table for this machine")
    column = 0 if linux.MACHINE == "x86_64" else 1
    program = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQUAL, _AUDIT_ARCH[linux.MACHINE], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if column == 0:
        program += [_op(_JUMP_SET, _X32_BIT, 0, 1), _refuse()]
    program += _refuse_all([numbers[column] for numbers in _NUMBERS.values()])
    program += _rule(_CLONE3[column], [_refuse(errno.ENOSYS)])  # its flags are behind a pointer
    no_namespaces = [_argument(0), _op(_JUMP_SET, _NAMESPACE_FLAGS, 0, 1), _refuse()]
    threads_only = [] if has_own_pids else [_op(_JUMP_SET, _CLONE_THREAD, 1, 0), _refuse()]
    program += _rule(_CLONE[column], no_namespaces + threads_only)
    stream_only = [_argument(1), _op(_AND, _SOCK_TYPE_MASK), _op(_JUMP_EQUAL, _SOCK_STREAM, 1, 0), _refuse()]
    program += _rule(_SOCKETPAIR[column], stream_only)
    keep_death_signal = [_argument(0), _op(_JUMP_EQUAL, linux.PR_SET_PDEATHSIG, 0, 1), _refuse()]
    program += _rule(_PRCTL[column], keep_death_signal)
    program += _rule(_PRLIMIT[column], [_argument(0), _op(_JUMP_EQUAL, 0, 1, 0), _refuse()])
    if not has_own_pids:
        for fork in _FORKS:
            program += _rule(fork[column], [_refuse()])
        for call in _OWN_PID_ONLY:
            program += _rule(call[column], [_argument(0), _op(_JUMP_EQUAL, pid, 1, 0), _refuse()])
        program += _refuse_all([numbers[column] for numbers in _REACH_OTHERS])
        for call, requests in (
            (_FCNTL, [_F_SETOWN, _F_SETSIG, _F_SETOWN_EX]),
            (_IOCTL, [_FIOSETOWN, _SIOCSPGRP]),
        ):
            program += _rule(call[column], [_argument(1), *_refuse_all(requests)])
    program.append(_op(_RETURN, _ALLOW))
    text = b"".join(program)
    return ctypes.create_string_buffer(text, len(text))


def install(program: ctypes.Array[ctypes.c_char]) -> None:
    """Put the filter on this process and all it will start; needs no_new_privs."""
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(program))
    linux.prctl(linux.PR_SET_SECCOMP, _FILTER_MODE, header)
