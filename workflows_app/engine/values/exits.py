"""Which exit a finished block leaves by."""

from __future__ import annotations

from functools import partial
from typing import Final

from workflows_app.engine.definition import BaseBlockDef
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.conditions import ConditionError, evaluate
from workflows_app.engine.values.context import BlockContext

MAX_EXIT_LENGTH: Final = 200
_DECORATION: Final = " \t\r\n*_#>`\"'"  # what models put around a verdict


def choose_exit(
    block: BaseBlockDef, output: str, exit_handle: str | None, context: BlockContext
) -> str | None:
    """The first exit whose condition holds, else the one the block took itself, else the default one."""
    cases = (*block.exit_conditions, *block.routes)
    if cases:
        own = NodeRecord(node_id=block.id, output=output, exit_handle=exit_handle)
        lookup = partial(context.lookup, own=own)
        for case in cases:
            try:
                if case.when is not None and evaluate(case.when, lookup):
                    return case.exit
            except ConditionError as error:
                raise BlockFailure("condition", f"Cannot decide exit '{case.exit}': {error}.") from None
        if exit_handle is None:
            return next((case.exit for case in cases if case.default), None)
    if exit_handle is not None and len(exit_handle) > MAX_EXIT_LENGTH:
        raise BlockFailure(
            "bad_output",
            f"The exit {exit_handle[:40]!r}… has {len(exit_handle)} characters; at most {MAX_EXIT_LENGTH} are allowed.",
        )
    return exit_handle


def verdict_exit(answer: str) -> str:
    """The exit of a gate whose soul answered in words: `pass` if it begins with PASS, else `fail`."""
    return "pass" if answer.lstrip(_DECORATION).startswith("PASS") else "fail"
