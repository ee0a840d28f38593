"""The document as JSON Schema (2020-12), generated from the tables the validator reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from workflows_app.engine.definition import BLOCK_DEFS
from workflows_app.engine.schema.block_keys import (
    BLOCK_KEYS,
    BLOCK_SHAPES,
    BLOCK_TYPE,
    CONDITION,
    CONDITION_GROUP,
)
from workflows_app.engine.schema.document_keys import DOCUMENT

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_VALUE_KINDS: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": ["string", "number", "boolean"]},
    "number": {
        "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*[-+.\d]"}, {"type": "null"}]
    },
    "name": {"type": ["string", "null"]},
    "transform": {"type": ["string", "null"]},
}


def document_schema(assertion_types: Iterable[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The schema of a document; `assertion_types` are the entries of the assertion engine's catalogue."""
    return {
        "$schema": DIALECT,
        "title": "Runsight workflow",
        "description": "A workflow: blocks, how they follow each other, and what is checked of their outputs.",
        **DOCUMENT.schema(),
        "$defs": {
            "block": _block(),
            "condition": {"anyOf": [CONDITION.schema(), CONDITION_GROUP.schema()]},
            "assertion": _assertion(list(assertion_types or ())),
            **{f"{kind}_block": _kind(kind) for kind in BLOCK_KEYS},
        },
    }


def _block() -> dict[str, Any]:
    """A block; its type decides which keys an editor completes."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {**BLOCK_TYPE.schema(), "description": "Which kind of block this is."}},
        "allOf": [
            _of_type([kind, *BLOCK_DEFS[kind].aliases], {"$ref": f"#/$defs/{kind}_block"})
            for kind in BLOCK_KEYS
        ],
    }


def _of_type(names: list[str], schema: dict[str, Any]) -> dict[str, Any]:
    """What a mapping must be if its `type` is one of these."""
    return {"if": {"properties": {"type": {"enum": names}}, "required": ["type"]}, "then": schema}


def _kind(kind: str) -> dict[str, Any]:
    """The schema of one kind of block, with the defaults its definition has."""
    schema = {**BLOCK_SHAPES[kind].schema(), "description": str(BLOCK_DEFS[kind].__doc__)}
    defaults = {field.name: field.default for field in fields(BLOCK_DEFS[kind])}
    for key, entry in BLOCK_SHAPES[kind].keys.items():
        default = defaults.get(entry.attribute or key)
        if isinstance(default, (str, int, float)):
            schema["properties"][key]["default"] = default
    return schema


def _assertion(types: list[Mapping[str, Any]]) -> dict[str, Any]:
    """One assertion; without a catalogue, a mapping with a type."""
    base: dict[str, Any] = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}},
    }
    if not types:
        return base
    names = [str(entry["type"]) for entry in types]
    base["properties"]["type"] = {
        "enum": [*names, *(f"not-{name}" for name in names)],
        "description": "What is checked; `not-` before it negates the verdict.",
    }
    base["allOf"] = [
        _of_type([entry["type"], f"not-{entry['type']}"], _assertion_type(entry)) for entry in types
    ]
    return base


def _assertion_type(entry: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {"type": {"description": entry.get("description", "")}}
    for field in entry["fields"]:
        properties[field["name"]] = {
            **_VALUE_KINDS.get(field["kind"], {}),
            "description": field.get("description", ""),
        }
        if field.get("default") is not None:
            properties[field["name"]]["default"] = field["default"]
    found: dict[str, Any] = {
        "description": entry.get("description", ""),
        "properties": properties,
        "additionalProperties": False,
        "required": [field["name"] for field in entry["fields"] if field["required"]],
    }
    if entry.get("example") is not None:
        found["examples"] = [entry["example"]]
    return found
