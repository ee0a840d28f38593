"""A form made from the inputs a workflow declares, and what was typed into it as values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows_app.engine.definition import Fault, WorkflowDefinition
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.values.outputs import storable

PREFIX = "input-"
ANYTHING = "inputs"  # the one field of a workflow that declares none
LONG = 80

KINDS = {"number": "number", "integer": "number", "boolean": "flag", "array": "json", "object": "json"}


@dataclass(frozen=True)
class Widget:
    """One field as the page shows it."""

    name: str
    label: str
    kind: str  # line, text, number, flag, json
    value: str = ""
    help: str = ""
    type: str = ""
    is_required: bool = False
    errors: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"id-{self.name}"

    @property
    def rows(self) -> int:
        """The lines of a text field: all of its text and one to go on, within reason."""
        return min(max(self.value.count("\n") + 2, 4 if self.kind == "json" else 8), 20)


def widgets_of(
    definition: WorkflowDefinition, typed: Mapping[str, str] | None = None, faults: Sequence[Fault] = ()
) -> list[Widget]:
    """The fields, with what was typed or the defaults, and what is wrong with each."""
    wrong: dict[str, list[str]] = {}
    for fault in faults:
        wrong.setdefault(fault.path, []).append(fault.message)
    if definition.inputs is None:
        value = (typed or {}).get(ANYTHING, "{}")
        help_ = "This workflow declares no inputs and takes any JSON object."
        errors = tuple(message for messages in wrong.values() for message in messages)
        return [Widget(ANYTHING, "Inputs", "json", value, help_, "object", errors=errors)]
    widgets = []
    for field in definition.inputs:
        default = "" if field.default is None else field.default
        if typed is not None:
            value = typed.get(PREFIX + field.name, "")
        else:
            value = default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
        is_long = "\n" in value or len(value) > LONG or field.type == "any"
        widgets.append(
            Widget(
                PREFIX + field.name,
                field.name,
                KINDS.get(field.type, "text" if is_long else "line"),
                value,
                field.description,
                field.type,
                field.required and not field.has_default,
                tuple(wrong.get(f"inputs.{field.name}", ())),
            )
        )
    return widgets


def read_inputs(
    definition: WorkflowDefinition, typed: Mapping[str, str]
) -> tuple[dict[str, Any], list[Fault]]:
    """The values of what was typed, and what cannot be read; an empty field takes the default."""
    if definition.inputs is None:
        try:
            value = storable_json(typed.get(ANYTHING, "").strip() or "{}")
        except ValueError as error:
            return {}, [Fault("inputs", None, f"is not JSON: {error}.")]
        if not isinstance(value, dict):
            return {}, [Fault("inputs", None, 'must be a JSON object, such as {"topic": "rain"}.')]
        return value, []
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for field in definition.inputs:
        # A browser sends lines ending in CRLF; the text that was typed has none.
        text = storable(typed.get(PREFIX + field.name, "").replace("\r\n", "\n"))
        if field.type == "boolean":
            values[field.name] = bool(text)
        elif text:
            try:
                values[field.name] = text if field.type == "string" else storable_json(text)
            except ValueError as error:
                values[field.name] = text if field.type == "any" else None
                if field.type != "any":
                    is_number = KINDS[field.type] == "number"
                    message = f"“{text}” is not a number." if is_number else f"is not JSON: {error}."
                    faults.append(Fault(f"inputs.{field.name}", None, message))
    return values, faults
