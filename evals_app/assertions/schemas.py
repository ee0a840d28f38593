"""JSON Schemas: checked when read, built once, and never slower than their limits or fetched from anywhere."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

from .base import BadOption
from .limits import CannotCheck, Deadline, PatternBudget
from .options import JsonValue, describe
from .patterns import BadPattern, compile_pattern, shorten

_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DATA_KEYWORDS = frozenset({"const", "enum", "default", "examples"})
_running = threading.local()


class CompiledSchema:
    """A schema that is known to be valid; its validator is built when first needed."""

    def __init__(self, document: Any) -> None:
        self.document = document

    @cached_property
    def _validator(self) -> Any:
        from referencing import Registry

        return _bounded(_validator_class(self.document))(self.document, registry=Registry())

    def build(self) -> None:
        """Build the validator now, so that no run has to."""
        _ = self._validator

    def first_fault(self, instance: Any, budget: PatternBudget, deadline: Deadline) -> str | None:
        """Say what is wrong with a value, or return None when it is valid."""
        _running.budget, _running.deadline = budget, deadline
        try:
            fault = next(self._validator.iter_errors(instance), None)
        except RecursionError:
            raise CannotCheck("The schema or the JSON recurses too deeply to be checked.") from None
        except Exception as error:
            if type(error).__name__ != "_WrappedReferencingError":
                raise
            raise CannotCheck(
                f"The schema refers to something it does not contain: {_short(error)}."
            ) from None
        finally:
            del _running.budget, _running.deadline
        return None if fault is None else f"at {fault.json_path}: {_short(fault.message)}"


def _short(text: object, limit: int = 160) -> str:
    line = " ".join(str(text)[: limit * 4].split())
    return line if len(line) <= limit else f"{line[:limit]}…"


class Schema:
    """A JSON Schema, as a map; left out, null or empty text means none."""

    name = "JSON Schema"

    def parse(self, raw: Any) -> CompiledSchema | None:
        if raw == "":
            return None
        if not isinstance(raw, dict | bool):
            raise BadOption(f"must be a JSON Schema, written as a map, not {describe(raw)}")
        return load_schema(JsonValue(raw).text)


@lru_cache(maxsize=512)
def load_schema(text: str) -> CompiledSchema:
    """Check a schema's JSON text and keep it, or raise BadOption."""
    document = json.loads(text)
    try:
        if not is_surely_valid(document):
            _check_by_metaschema(document)
        _check_parts(document)
    except RecursionError:
        raise BadOption("is nested too deeply") from None
    return CompiledSchema(document)


def _check_by_metaschema(document: Any) -> None:
    from jsonschema.exceptions import best_match

    validator_class = _validator_class(document)
    meta = validator_class(validator_class.META_SCHEMA)
    fault = best_match(meta.iter_errors(document))
    if fault is not None:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path)
        raise BadOption(f"is not a valid JSON Schema: {_short(fault.message)}", path)


def _validator_class(document: Any) -> Any:
    from jsonschema import validators

    validator_for: Any = validators.validator_for
    if not isinstance(document, dict) or "$schema" not in document:
        return validator_for({"$schema": _DEFAULT_DRAFT})
    named = document["$schema"]
    found = validator_for({"$schema": named}, default=None) if isinstance(named, str) else None
    if found is None:
        raise BadOption(
            f"is {describe(named)}, which names no known draft; leave it out or use {_DEFAULT_DRAFT!r}",
            ".$schema",
        )
    return found


def _check_parts(root: Any) -> None:
    """Compile every pattern and resolve every local reference, wherever a schema can stand."""
    has_ids = False
    references: list[tuple[str, str]] = []
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, list):
            stack.extend((f"{path}[{i}]", item) for i, item in enumerate(node))
        elif isinstance(node, dict):
            has_ids = has_ids or "$id" in node or "id" in node
            if isinstance(node.get("pattern"), str):
                _check_pattern(node["pattern"], f"{path}.pattern")
            if isinstance(node.get("patternProperties"), dict):
                for pattern in node["patternProperties"]:
                    _check_pattern(pattern, f"{path}.patternProperties")
            if isinstance(node.get("$ref"), str):
                references.append((f"{path}.$ref", node["$ref"]))
            stack.extend((f"{path}.{key}", value) for key, value in node.items() if key not in _DATA_KEYWORDS)
    if not has_ids:
        for path, reference in references:
            _check_reference(root, reference, path)


def _check_pattern(pattern: str, path: str) -> None:
    try:
        compile_pattern(pattern)
    except BadPattern as fault:
        raise BadOption(f"{shorten(pattern)} {fault}", path) from None


def _check_reference(root: Any, reference: str, path: str) -> None:
    if not reference.startswith("#"):
        raise BadOption(
            f"{shorten(reference)} is outside the schema and is never fetched; copy it into $defs", path
        )
    if reference != "#" and not reference.startswith("#/"):
        return  # an anchor; found or missed when the schema is used
    from urllib.parse import unquote

    node = root
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and len(key) < 10 and int(key) < len(node):
            node = node[int(key)]
        else:
            raise BadOption(f"{shorten(reference)} points to nothing in the schema", path)


# A validator that keeps its limits


def _timed_search(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).found_in(text, _running.budget)


@lru_cache(maxsize=16)
def _bounded(base: Any) -> Any:
    """Derive a validator whose patterns are timed, whose comparisons are linear and whose whole work has an end."""
    from jsonschema import validators

    namespaces: dict[int, dict[str, Any]] = {}
    extend: Any = validators.extend
    return extend(base, {k: _with_deadline(_rebind(v, namespaces)) for k, v in base.VALIDATORS.items()})


def _rebind(function: Any, namespaces: dict[int, dict[str, Any]]) -> Any:
    """Copy a keyword's function so that it and its helpers search and compare with ours, and the library stays as it is."""
    if not isinstance(function, FunctionType):
        return function
    original = function.__globals__
    namespace = namespaces.get(id(original))
    if namespace is None:
        namespace = namespaces[id(original)] = dict(original)
        for name, value in original.items():
            if isinstance(value, FunctionType) and value.__module__.startswith("jsonschema."):
                namespace[name] = _rebind(value, namespaces)
        namespace["re"] = SimpleNamespace(search=_timed_search)
        namespace["uniq"] = are_unique
    return FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )


def _with_deadline(keyword: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any] | None]:
    def bounded_keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        _running.deadline.check()
        return keyword(validator, value, instance, schema)

    return bounded_keyword


def are_unique(items: list[Any]) -> bool:
    """Tell whether no two JSON values are equal, in linear time."""
    seen = set()
    for item in items:
        key = _identity(item)
        if key in seen:
            return False
        seen.add(key)
    return True


def _identity(value: Any) -> Any:
    if isinstance(value, dict):
        return ("map", frozenset((key, _identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_identity(item) for item in value))
    return (isinstance(value, bool), value)


# Most schemas use plain keywords only; these are checked without loading the library

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_SAFE_REFERENCE = re.compile(r"#(?:/[A-Za-z0-9_$~./-]*)?")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_anything(value: Any) -> bool:
    return True


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_surely_valid, value))


def _are_named_schemas(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_surely_valid, value.values()))


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and _SAFE_REFERENCE.fullmatch(value) is not None


def is_surely_valid(schema: Any) -> bool:
    """Tell whether a schema of the default draft is valid beyond doubt; False only means: ask the metaschema."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    for keyword, value in schema.items():
        check = _PLAIN_KEYWORDS.get(keyword)
        if check is None:
            if keyword.startswith("$") or keyword in _OLD_KEYWORDS:
                return False
        elif not check(value):
            return False
    return True


_OLD_KEYWORDS = frozenset({"id", "definitions", "dependencies"})
_PLAIN_KEYWORDS: dict[str, Callable[[Any], bool]] = {
    "$schema": lambda value: bool(value == _DEFAULT_DRAFT),
    "$ref": _is_reference,
    "type": _is_type,
    "required": _are_names,
    "enum": _is_list,
    "examples": _is_list,
    "multipleOf": _is_positive,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
    **dict.fromkeys(("const", "default"), _is_anything),
    **dict.fromkeys(("$comment", "title", "description", "format", "pattern"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "dependentSchemas"), _are_named_schemas),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _are_schemas),
    **dict.fromkeys(("items", "contains", "not", "if", "then", "else", "propertyNames"), is_surely_valid),
    **dict.fromkeys(("additionalProperties", "contentSchema"), is_surely_valid),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), is_surely_valid),
}
