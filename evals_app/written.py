"""Assertions as people write them: a YAML list on its own, as in a block of a document."""

from __future__ import annotations

import re
from typing import Any

import yaml

from evals_app.assertions import validate_assertions
from workflows_app.engine.definition import Fault
from workflows_app.engine.parse import KeyPath, ParsedDocument, parse_value

MOST_ASSERTIONS = 200
_STEP = re.compile(r"\[(\d+)\]|\.?([\w-]+)")


def read_assertions(text: str) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The assertions of a YAML text, and what keeps it from being a list of them, each with its line.

    What is wrong inside an assertion is not told here: `assertion_faults` does, and grading does too.
    """
    document = parse_value(text)
    if not document.is_whole or document.faults:
        return [], document.faults
    found = _list_in(document.value)
    if found is None:
        return [], [Fault("", 1, "Write a list: each assertion begins with `- type: …`.")]
    if len(found) > MOST_ASSERTIONS:
        return [], [
            Fault("", None, f"{len(found):,} assertions are too many; up to {MOST_ASSERTIONS} will do.")
        ]
    faults = [
        Fault(
            f"[{index}]", document.lines.get(id(found), {}).get(index), "An assertion is a map with a `type`."
        )
        for index, one in enumerate(found)
        if not isinstance(one, dict)
    ]
    return ([] if faults else found), faults


def assertion_faults(text: str) -> list[Fault]:
    """Everything wrong with a YAML text of assertions that can be found before grading, each with its line."""
    found, faults = read_assertions(text)
    if faults:
        return faults
    document = parse_value(text)
    within: KeyPath = (
        ("assertions",) if isinstance(document.value, dict) and "type" not in document.value else ()
    )
    return [
        _placed(document, within, problem.path, problem.message) for problem in validate_assertions(found)
    ]


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


def _placed(document: ParsedDocument, within: KeyPath, path: str, message: str) -> Fault:
    steps: list[str | int] = [int(m[1]) if m[1] else m[2] for m in _STEP.finditer(path)]
    if isinstance(document.value, dict) and not within:
        steps = steps[1:]  # one assertion without its dash is number 0 of a list nobody wrote
    return Fault(path, document.line((*within, *steps)), message)
