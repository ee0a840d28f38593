"""Which layers hold on this system, in sentences for the admin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .client import Sandbox, SandboxUnavailable, harden_parent
from .inside.confine import Plan


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
        return describe(sandbox.plan, is_parent_hard=harden_parent())
    except SandboxUnavailable as fault:
        return (Layer("code blocks", False, f"weaker: none can run at all ({fault})."),)
    finally:
        sandbox.close()


def describe(plan: Plan, *, is_parent_hard: bool) -> tuple[Layer, ...]:
    """Turn a plan into sentences."""
    layers: tuple[Layer, ...] = (
        _files(plan),
        _network(plan),
        _processes(plan),
        _memory(),
        _folder(plan),
        _user(plan),
        _system_calls(plan),
        _server(plan, is_parent_hard),
    )
    if "imports" in plan.faults:
        text = "weaker: the blocks' own user cannot read the standard library; only modules loaded beforehand import."
        layers += (Layer("imports", False, f"{text[:-1]} ({plan.faults['imports']})."),)
    return layers


def _why(plan: Plan, name: str) -> str:
    return f"{name}: {plan.faults.get(name, 'not available')}"


def _files(plan: Plan) -> Layer:
    if plan.namespaces and plan.landlock:
        text = "cut off by a private root with the standard library only, and by Landlock."
    elif plan.namespaces:
        text = f"cut off by a private root with the standard library only ({_why(plan, 'landlock')})."
    elif plan.landlock:
        text = f"cut off by Landlock; the names of files can still be seen ({_why(plan, 'namespaces')})."
    else:
        missing = f"{_why(plan, 'namespaces')}; {_why(plan, 'landlock')}"
        whose = (
            "everyone may read"
            if plan.own_uid
            else "the server's own user may read, its database and secret key included"
        )
        return Layer("files", False, f"weaker: code reads what {whose} ({missing}).")
    return Layer("files", True, text)


def _network(plan: Plan) -> Layer:
    if plan.namespaces:
        return Layer("network", True, "cut off by a namespace without any interface.")
    if plan.seccomp:
        return Layer("network", True, f"cut off by refusing every socket ({_why(plan, 'namespaces')}).")
    if plan.landlock >= 4:
        return Layer("network", False, "weaker: Landlock refuses TCP, but not UDP or unix sockets.")
    return Layer("network", False, "weaker: code can open connections, to this machine's own services too.")


def _processes(plan: Plan) -> Layer:
    if plan.namespaces == "root":
        return Layer("processes", True, "each block is alone in a PID namespace that ends with it.")
    if plan.namespaces:
        text = "each block is alone in a PID namespace that ends with it; the limit on their number is shared by the blocks of one server."
        return Layer("processes", True, text)
    if plan.seccomp:
        return Layer("processes", True, f"a block may not start any ({_why(plan, 'namespaces')}).")
    reach = "" if plan.own_uid else ", and it can signal the server"
    text = (
        f"weaker: what a block starts is looked for and killed after it{reach} ({_why(plan, 'namespaces')})."
    )
    return Layer("processes", False, text)


def _memory() -> Layer:
    return Layer("memory and time", True, "limited for each process; wall time is limited for the block.")


def _folder(plan: Plan) -> Layer:
    if plan.namespaces:
        return Layer("own folder", True, "a memory file system with a size limit, gone with the block.")
    return Layer(
        "own folder",
        False,
        "weaker: a folder on disk, removed afterwards; each file is limited, their sum is not.",
    )


def _user(plan: Plan) -> Layer:
    if plan.own_uid:
        return Layer("user", True, "each block runs as an unprivileged user of its own.")
    if plan.namespaces:
        return Layer("user", True, "the server's own user, without any privilege, in a user namespace.")
    return Layer("user", False, "weaker: code runs as the server's own user.")


def _system_calls(plan: Plan) -> Layer:
    if plan.seccomp:
        return Layer(
            "system calls",
            True,
            "starting programs, sockets, ptrace, mounts and some 50 more are refused by seccomp.",
        )
    return Layer("system calls", False, f"weaker: not filtered ({_why(plan, 'seccomp')}).")


def _server(plan: Plan, is_parent_hard: bool) -> Layer:
    if is_parent_hard:
        return Layer(
            "server's memory", True, "closed to other processes of the same user, its environment too."
        )
    if plan.own_uid:
        return Layer("server's memory", True, "out of reach for the blocks' own users.")
    return Layer(
        "server's memory",
        False,
        "weaker: this system does not let a process close its memory to others of its user.",
    )
