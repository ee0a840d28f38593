"""Every assertion type as data: what the API, the editor and the docs show."""

from __future__ import annotations

import inspect
import json
from typing import Any

from evals_app.assertions.base import Assertion, registry
from evals_app.assertions.runner import options_for
from evals_app.assertions.types import measures, similarity, structure, text

#: The families, in the order they are shown; importing them here registers their types.
FAMILIES = (text, structure, similarity, measures)


def assertion_types() -> list[dict[str, Any]]:
    """List every type with its family, fields, defaults and an example, as JSON-able values."""
    order = {family.__name__: position for position, family in enumerate(FAMILIES)}
    shown = sorted(registry.values(), key=lambda cls: order.get(cls.__module__, len(order)))
    return [_describe(cls) for cls in shown]


def _describe(cls: type[Assertion]) -> dict[str, Any]:
    example = {"type": cls.type, **cls.example}
    lines = [f"{key}: {_scalar(value)}" for key, value in example.items()]
    return {
        "type": cls.type,
        "family": cls.__module__.rpartition(".")[2],
        "description": inspect.getdoc(cls) or "",
        "fields": [
            {
                "name": option.name,
                "kind": option.kind.name,
                "required": option.required,
                "default": option.default,
                "description": option.description,
            }
            for option in options_for(cls)
        ],
        "example": json.loads(json.dumps(example)),
        "example_yaml": "- " + "\n  ".join(lines) + "\n",
    }


def _scalar(value: Any) -> str:
    """Write a value of an example; JSON is YAML too."""
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalpha():
        return value
    return json.dumps(value, ensure_ascii=False)
