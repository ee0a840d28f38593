"""Whether a run's inputs are what the workflow's interface asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from workflows_app.engine.definition import Fault, InputField, WorkflowDefinition
from workflows_app.engine.parse import describe
from workflows_app.engine.values.paths import suggestion

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def type_problem(value: Any, wanted: str) -> str | None:
    """Why a value is not of an interface type, if it is not."""
    types = _TYPES.get(wanted)
    fits = types is None or (
        isinstance(value, types) and (not isinstance(value, bool) or wanted == "boolean")
    )
    if fits and isinstance(value, float) and types is not None:
        fits = math.isfinite(value) and (wanted != "integer" or value.is_integer())
    return None if fits else f"must be of type {wanted}, not {describe(value)}"


def check_inputs(definition: WorkflowDefinition, inputs: Any) -> tuple[dict[str, Any], list[Fault]]:
    """The inputs with defaults filled in, and everything wrong with them."""
    if inputs is None:
        inputs = {}
    if not isinstance(inputs, Mapping):
        return {}, [Fault("inputs", None, f"must be an object, not {describe(inputs)}")]
    values = dict(inputs)
    faults = [
        Fault("inputs", None, f"the name {name!r} is not a text")
        for name in values
        if not isinstance(name, str)
    ]
    if definition.inputs is None:
        return values, faults
    known = {field.name: field for field in definition.inputs}
    faults += [
        Fault(f"inputs.{name}", None, f"unknown input '{name}'{suggestion(name, known)}")
        for name in values
        if name not in known and isinstance(name, str)
    ]
    for field in definition.inputs:
        if field.name not in values and field.has_default:
            values[field.name] = field.default
        if problem := _problem(field, values):
            faults.append(Fault(f"inputs.{field.name}", None, problem))
        else:
            # An optional input that is left out can still be read, as null.
            values.setdefault(field.name, None)
    return values, faults


def _problem(field: InputField, values: Mapping[str, Any]) -> str | None:
    value = values.get(field.name)
    if value is not None:
        return type_problem(value, field.type)
    if not field.required:
        return None
    kind = "" if field.type == "any" else f" (type {field.type})"
    return f"is required{kind}" + (f": {field.description}" if field.description else "")
