"""Which exit a finished block leaves by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workflows_app.engine.conditions import ConditionError, evaluate
from workflows_app.engine.context import BlockContext
from workflows_app.engine.definition import BaseBlockDef, Condition, ConditionGroup
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure

MAX_EXIT_LENGTH: Final = 200
_DECORATION: Final = " \t\r\n*_#>`\"'"  # what models put around a verdict


def choose_exit(
    block: BaseBlockDef, output: str, exit_handle: str | None, context: BlockContext
) -> str | None:
    """The first exit whose condition holds, else the one the block took itself, else the default one."""
    cases = (*block.exit_conditions, *block.routes)
    if cases:
        lookup = context.with_own(NodeRecord(node_id=block.id, output=output, exit_handle=exit_handle))
        for case in cases:
            if case.when is not None and _holds(case.when, case.exit, lookup):
                return case.exit
        if exit_handle is None:
            return next((case.exit for case in cases if case.default), None)
    if exit_handle is not None and len(exit_handle) > MAX_EXIT_LENGTH:
        raise BlockFailure(
            "bad_output",
            f"The exit {exit_handle[:40]!r}… has {len(exit_handle)} characters; at most {MAX_EXIT_LENGTH} are allowed.",
            is_retryable=False,
        )
    return exit_handle


def verdict_exit(answer: str) -> str:
    """The exit of a gate whose judge answered in words: `pass` if it begins with PASS, else `fail`."""
    return "pass" if answer.lstrip(_DECORATION).startswith("PASS") else "fail"


def _holds(when: Condition | ConditionGroup, exit_handle: str, lookup: Callable[[str], Any]) -> bool:
    try:
        return evaluate(when, lookup)
    except ConditionError as error:
        raise BlockFailure(
            "condition", f"Cannot decide exit '{exit_handle}': {error}.", is_retryable=False
        ) from None
