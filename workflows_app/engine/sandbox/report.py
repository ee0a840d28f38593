"""Which layers hold on this system, in sentences for the admin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .client import Sandbox, SandboxUnavailable, harden_parent
from .inside.confine import Isolation


@dataclass(frozen=True)
class Layer:
    """One thing that is cut off, or not: `is_full` is False where this system does it only in part."""

    name: str
    is_full: bool
    sentence: str


@cache
def isolation_report() -> tuple[Layer, ...]:
    """Start a zygote, ask what it could set up, and say it; asked once, since it does not change."""
    sandbox = Sandbox()
    try:
        return layers_of(sandbox.isolation, is_parent_hard=harden_parent())
    except SandboxUnavailable as error:
        return (Layer("code blocks", False, f"weaker: none can run at all ({error})."),)
    finally:
        sandbox.close()


def layers_of(isolation: Isolation, *, is_parent_hard: bool) -> tuple[Layer, ...]:
    """Each layer in a sentence; one that begins with "weaker" is about a layer that is not full."""
    missing = {
        name: f"{name}: {isolation.missing.get(name, 'not available')}"
        for name in ("namespaces", "landlock", "seccomp")
    }
    own_files = "everyone may read"
    if not isolation.own_uid:
        own_files = "the server's own user may read, its database and secret key included"
    reach = "" if isolation.own_uid else ", and it can signal the server"
    alone = "each block is alone in a PID namespace that ends with it"
    sentences = {
        "files": _first(
            f"weaker: code reads what {own_files} ({missing['namespaces']}; {missing['landlock']}).",
            (
                isolation.namespaces and isolation.landlock,
                "cut off by a private root with the standard library only, and by Landlock.",
            ),
            (
                isolation.namespaces,
                f"cut off by a private root with the standard library only ({missing['landlock']}).",
            ),
            (
                isolation.landlock,
                f"cut off by Landlock; the names of files can still be seen ({missing['namespaces']}).",
            ),
        ),
        "network": _first(
            "weaker: code can open connections, to this machine's own services too.",
            (isolation.namespaces, "cut off by a namespace without any interface."),
            (isolation.seccomp, f"cut off by refusing every socket ({missing['namespaces']})."),
            (isolation.landlock >= 4, "weaker: Landlock refuses TCP, but not UDP or unix sockets."),
        ),
        "processes": _first(
            f"weaker: what a block starts is looked for and killed after it{reach} ({missing['namespaces']}).",
            (isolation.namespaces == "root", f"{alone}."),
            (
                isolation.namespaces,
                f"{alone}; the limit on their number is shared by the blocks of one server.",
            ),
            (isolation.seccomp, f"a block may not start any ({missing['namespaces']})."),
        ),
        "memory and time": "limited for each process; wall time is limited for the block.",
        "own folder": _first(
            "weaker: a folder on disk, removed afterwards; each file is limited, their sum is not.",
            (isolation.namespaces, "a memory file system with a size limit, gone with the block."),
        ),
        "user": _first(
            "weaker: code runs as the server's own user.",
            (isolation.own_uid, "each block runs as an unprivileged user of its own."),
            (isolation.namespaces, "the server's own user, without any privilege, in a user namespace."),
        ),
        "system calls": _first(
            f"weaker: not filtered ({missing['seccomp']}).",
            (
                isolation.seccomp,
                "starting programs, sockets, ptrace, mounts and some 50 more are refused by seccomp.",
            ),
        ),
        "server's memory": _first(
            "weaker: this system does not let a process close its memory to others of its user.",
            (is_parent_hard, "closed to other processes of the same user, its environment too."),
            (isolation.own_uid, "out of reach for the blocks' own users."),
        ),
    }
    if "imports" in isolation.missing:
        sentences["imports"] = (
            "weaker: the blocks' own user cannot read the standard library; "
            f"only modules loaded beforehand import ({isolation.missing['imports']})."
        )
    return tuple(Layer(name, not text.startswith("weaker"), text) for name, text in sentences.items())


def _first(otherwise: str, *choices: tuple[object, str]) -> str:
    """The sentence of the first choice that holds."""
    return next((sentence for holds, sentence in choices if holds), otherwise)
