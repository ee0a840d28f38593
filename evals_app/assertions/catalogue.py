"""Every assertion type as data: what the API, the editor and the docs show."""

from __future__ import annotations

import inspect
import json
from typing import Any

from . import measures, similarity, structure, text
from .base import Assertion, Option, registry
from .suite import options_for

#: The families, in the order they are shown; importing them here registers their types.
FAMILIES = (text, structure, similarity, measures)


def assertion_types() -> list[dict[str, Any]]:
    """List every type with its family, fields, defaults and an example, as JSON-able values."""
    shown = [cls for family in FAMILIES for cls in registry.values() if cls.__module__ == family.__name__]
    added = [cls for cls in registry.values() if cls not in shown]
    return [_describe(cls) for cls in (*shown, *added)]


def _describe(cls: type[Assertion]) -> dict[str, Any]:
    example = {"type": cls.type, **cls.example}
    return {
        "type": cls.type,
        "family": cls.__module__.rpartition(".")[2],
        "description": inspect.getdoc(cls) or "",
        "fields": [_describe_field(option) for option in options_for(cls)],
        "example": json.loads(json.dumps(example)),
        "example_yaml": to_yaml(example),
    }


def _describe_field(option: Option) -> dict[str, Any]:
    return {
        "name": option.name,
        "kind": option.kind.name,
        "required": option.required,
        "default": option.default,
        "description": option.description,
    }


def to_yaml(example: dict[str, Any]) -> str:
    """Write an example as one entry of a YAML list; JSON values are YAML too."""
    lines = [f"{key}: {_scalar(value)}" for key, value in example.items()]
    return "- " + "\n  ".join(lines) + "\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalpha():
        return value
    return json.dumps(value, ensure_ascii=False)
