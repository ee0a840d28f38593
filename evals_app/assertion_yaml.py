"""Assertions as people write them: a YAML list on its own, as in a block of a document."""

from __future__ import annotations

from typing import Any

import yaml

from evals_app.assertions import validate_assertions
from workflows_app.engine.definition import Fault
from workflows_app.engine.parse import parse_value
from workflows_app.engine.validate.blocks import problem_path

MOST_ASSERTIONS = 200


def read_assertions(text: str) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The assertions of a YAML text, and everything wrong with it that can be found before grading.

    A text that is no list of assertions has none; one with wrong options is still an assertion.
    """
    document = parse_value(text)
    if not document.is_whole or document.faults:
        return [], document.faults
    found = _list_in(document.value)
    if found is None:
        return [], [Fault("", 1, "Write a list: each assertion begins with `- type: …`.")]
    if len(found) > MOST_ASSERTIONS:
        return [], [
            Fault("", None, f"{len(found):,} assertions are too many; use at most {MOST_ASSERTIONS}.")
        ]
    faults = [
        Fault(
            f"[{index}]", document.lines.get(id(found), {}).get(index), "An assertion is a map with a `type`."
        )
        for index, one in enumerate(found)
        if not isinstance(one, dict)
    ]
    if faults:
        return [], faults
    for problem in validate_assertions(found):
        steps = problem_path(problem.path)
        if isinstance(document.value, dict):
            # One assertion without its dash is number 0 of a list nobody wrote.
            steps = steps[1:] if "type" in document.value else ("assertions", *steps)
        faults.append(Fault(problem.path, document.line(steps), problem.message))
    return found, faults


def write_assertions(assertions: list[dict[str, Any]] | None) -> str:
    """Assertions as the YAML a person would write."""
    if not assertions:
        return ""
    dumped: str = yaml.safe_dump(assertions, sort_keys=False, allow_unicode=True, width=100)
    return dumped


def _list_in(value: Any) -> list[Any] | None:
    """The list that was meant: the value, what stands under `assertions:`, or one assertion alone."""
    if value is None:
        return []
    if isinstance(value, dict):
        if value.keys() == {"assertions"}:
            return _list_in(value["assertions"])
        return [value] if "type" in value else None
    return value if isinstance(value, list) else None
