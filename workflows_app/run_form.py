"""A form made from the inputs a workflow declares, and what was typed into it as values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows_app.engine.definition import Fault, InputField, WorkflowDefinition
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.outputs import storable
from workflows_app.weight import html_bytes

PREFIX = "input-"
ANYTHING = "inputs"  # the one field of a workflow that declares none
LONG = 80
WIDGET_BYTES = 400  # of one without its texts
LIGHT_BYTES = 6_000

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
        """The lines of a text field: all of its text and one to go on, as far as a page has room."""
        return min(max(self.value.count("\n") + 2, 4 if self.kind == "json" else 8), 20)


def is_light(widgets: Sequence[Widget]) -> bool:
    """Whether the form may come with a page that is about something else."""
    return sum(WIDGET_BYTES + html_bytes(f"{one.value}{one.help}") for one in widgets) <= LIGHT_BYTES


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
    return [
        _widget(field, typed, tuple(wrong.get(f"inputs.{field.name}", ()))) for field in definition.inputs
    ]


def _widget(field: InputField, typed: Mapping[str, str] | None, errors: tuple[str, ...]) -> Widget:
    name = PREFIX + field.name
    value = typed.get(name, "") if typed is not None else _shown(field.default)
    return Widget(
        name,
        field.name,
        _kind(field, value),
        value,
        field.description,
        field.type,
        field.required and not field.has_default,
        errors,
    )


def _kind(field: InputField, value: str) -> str:
    if field.type in KINDS:
        return KINDS[field.type]
    return "text" if "\n" in value or len(value) > LONG or field.type == "any" else "line"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_inputs(
    definition: WorkflowDefinition, typed: Mapping[str, str]
) -> tuple[dict[str, Any], list[Fault]]:
    """The values of what was typed, and what cannot be read; an empty field takes the default."""
    if definition.inputs is None:
        value, fault = _json(typed.get(ANYTHING, "").strip() or "{}", "inputs")
        if fault is None and not isinstance(value, dict):
            fault = Fault("inputs", None, 'must be a JSON object, such as {"topic": "rain"}.')
        return (value if fault is None else {}), [fault] if fault else []
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for field in definition.inputs:
        # A browser sends lines ending in CRLF; the text that was typed has none.
        text = storable(typed.get(PREFIX + field.name, "").replace("\r\n", "\n"))
        if field.type == "boolean":
            values[field.name] = bool(text)
        elif text:
            value, fault = _value(field, text)
            values[field.name] = value
            faults += [fault] if fault else []
    return values, faults


def _value(field: InputField, text: str) -> tuple[Any, Fault | None]:
    if field.type == "string":
        return text, None
    value, fault = _json(text, f"inputs.{field.name}")
    if field.type == "any":
        return (text if fault else value), None
    if fault and KINDS[field.type] == "number":
        return None, Fault(fault.path, None, f"“{text}” is not a number.")
    return value, fault


def _json(text: str, path: str) -> tuple[Any, Fault | None]:
    try:
        return storable_json(text), None
    except ValueError as error:
        return None, Fault(path, None, f"is not JSON: {error}.")
