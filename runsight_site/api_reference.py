"""The OpenAPI document as a page prints it: calls by group, and the shapes they take and give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

METHODS = {
    "get": "accent",
    "post": "good",
    "put": "warn",
    "patch": "warn",
    "delete": "bad",
}  # and their tones
PREFIX = "#/components/schemas/"
FIRST = ("workflows", "runs", "evaluate", "regressions", "dashboard", "souls")


@dataclass(frozen=True)
class Type:
    """What a value is, in words; a shape has its own place on the page."""

    words: str
    shape: str = ""


@dataclass(frozen=True)
class Field:
    """A parameter, or a field of a shape."""

    name: str
    type: Type
    text: str = ""
    is_required: bool = False
    where: str = ""  # path, query, header


@dataclass(frozen=True)
class Call:
    """One method of one path."""

    method: str
    tone: str
    path: str
    anchor: str
    summary: str
    text: str
    parameters: tuple[Field, ...]
    body: Type | None
    example: str
    answers: tuple[tuple[str, Type | None, str], ...]  # code, what it gives, in words


@dataclass(frozen=True)
class Shape:
    """A named object or list of words."""

    name: str
    text: str
    fields: tuple[Field, ...]
    words: tuple[str, ...]  # of an enumeration


@dataclass(frozen=True)
class Reference:
    """Everything the page prints."""

    groups: dict[str, list[Call]]
    shapes: tuple[Shape, ...]
    faults: dict[str, str]  # what every call may answer besides


@cache
def reference() -> Reference:
    """Made once: the document changes with the code only."""
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    groups: dict[str, list[Call]] = {}
    faults: dict[str, str] = {}
    for path, item in document["paths"].items():
        for method, call in item.items():
            groups.setdefault(call["tags"][0].replace("-", " "), []).append(_call(path, method, call))
            faults |= {
                code: answer["description"] for code, answer in call["responses"].items() if code >= "400"
            }
    groups = {name: groups[name] for name in sorted(groups, key=_place)}
    shapes = tuple(_shape(name, one) for name, one in sorted(document["components"]["schemas"].items()))
    return Reference(groups, shapes, dict(sorted(faults.items())))


def _place(group: str) -> int:
    return FIRST.index(group) if group in FIRST else len(FIRST)


def _call(path: str, method: str, call: Mapping[str, Any]) -> Call:
    content = _content(call.get("requestBody", {}))
    return Call(
        method=method.upper(),
        tone=METHODS.get(method, "idle"),
        path=path,
        anchor=call["operationId"],
        summary=call["summary"],
        text=call["description"] if call["description"].rstrip(".") != call["summary"] else "",
        parameters=tuple(_parameter(one) for one in call.get("parameters", ())),
        body=type_of(content["schema"]) if content else None,
        example=_example(content),
        answers=tuple(_answer(code, answer) for code, answer in call["responses"].items() if code < "400"),
    )


def _content(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = holder.get("content", {})
    return content.get("application/json") or next(iter(content.values()), {})


def _example(content: Mapping[str, Any]) -> str:
    example = next(iter(content.get("examples", {}).values()), None)
    return json.dumps(example["value"], indent=2, ensure_ascii=False) if example else ""


def _answer(code: str, answer: Mapping[str, Any]) -> tuple[str, Type | None, str]:
    content = _content(answer)
    return code, type_of(content["schema"]) if content else None, answer.get("description", "")


def _parameter(one: Mapping[str, Any]) -> Field:
    return Field(
        one["name"],
        type_of(one["schema"]),
        one.get("description", ""),
        one.get("required", False),
        one["in"],
    )


def _shape(name: str, schema: Mapping[str, Any]) -> Shape:
    required = schema.get("required", ())
    fields = tuple(
        Field(key, type_of(one), one.get("description", ""), key in required)
        for key, one in schema.get("properties", {}).items()
    )
    return Shape(name, schema.get("description", ""), fields, tuple(map(str, schema.get("enum", ()))))


def type_of(schema: Mapping[str, Any]) -> Type:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        return Type(name, name)
    for key in ("allOf", "oneOf", "anyOf"):
        if key in schema:
            return _joined([type_of(one) for one in schema[key]])
    if "enum" in schema:
        return Type(" | ".join("null" if one is None else str(one) for one in schema["enum"]))
    kinds = schema.get("type", "any value")
    return _joined([_plain(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds])])


def _plain(kind: str, schema: Mapping[str, Any]) -> Type:
    if kind == "array":
        inner = type_of(schema.get("items", {}))
        return Type(f"list of {inner.words}", inner.shape)
    if kind == "string" and schema.get("format"):
        return Type(
            {"date-time": "time", "uuid": "UUID", "uri": "URL"}.get(schema["format"], schema["format"])
        )
    return Type({"string": "text", "object": "map", "boolean": "true or false"}.get(kind, kind))


def _joined(types: list[Type]) -> Type:
    words = dict.fromkeys(one.words for one in types)
    return Type(" or ".join(words), next((one.shape for one in types if one.shape), ""))
