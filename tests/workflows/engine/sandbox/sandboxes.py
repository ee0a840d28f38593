"""Sandboxes of several strengths, as kernels of several ages would give them."""

from pathlib import Path

import pytest

from workflows_app.engine.sandbox.client import Sandbox

STRENGTHS = {
    "all layers": frozenset(),
    "namespaces only": frozenset({"landlock", "seccomp"}),
    "no namespaces": frozenset({"namespaces"}),
    "limits only": frozenset({"namespaces", "landlock", "seccomp"}),
}


def start(strength):
    """Start a sandbox of this strength, or skip where the kernel cannot give it."""
    without = STRENGTHS[strength]
    sandbox = Sandbox(without=without)
    missing = (set(sandbox.isolation.missing) & {"namespaces", "landlock", "seccomp"}) - without
    if missing:
        sandbox.close()
        pytest.skip(f"this system lacks {', '.join(sorted(missing))}")
    return sandbox


def run(sandbox, body, data=None, *, timeout_seconds=10, **options):
    """Run the body of main, indented; its first line is line 2."""
    code = "def main(data):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return sandbox.run(code, data or {}, timeout_seconds=timeout_seconds, **options)


def descendants(pid):
    """Every process below this one, seen from outside the namespaces."""
    found, queue = set(), [pid]
    while queue:
        for task in Path(f"/proc/{queue.pop()}/task").glob("*"):
            try:
                children = {int(child) for child in (task / "children").read_text().split()}
            except OSError:
                continue
            queue += children - found
            found |= children
    return found
