"""JSON Schemas: checked when read, built once, and never slower than their limits or fetched from anywhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

from evals_app.assertions.base import BadOption
from evals_app.assertions.limits import CannotCheck, Deadline, PatternBudget
from evals_app.assertions.matching.patterns import compile_pattern, quote
from evals_app.assertions.options import JsonValue, describe

_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DATA_KEYWORDS = frozenset({"const", "enum", "default", "examples"})
_running = threading.local()


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema that is known to be valid, ready to check values."""

    validator: Any

    def first_error(self, instance: Any, budget: PatternBudget, deadline: Deadline) -> str | None:
        """Say what is wrong with a value, or return None when it is valid."""
        from referencing.exceptions import Unresolvable

        _running.budget, _running.deadline = budget, deadline
        try:
            error = next(self.validator.iter_errors(instance), None)
        except RecursionError:
            raise CannotCheck("The schema or the JSON recurses too deeply to be checked.") from None
        except Unresolvable as missing:
            raise CannotCheck(
                f"The schema refers to something it does not contain: {_short(missing)}."
            ) from None
        finally:
            del _running.budget, _running.deadline
        return None if error is None else f"at {error.json_path}: {_short(error.message)}"


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
    from jsonschema.exceptions import best_match
    from referencing import Registry

    document = json.loads(text)
    draft = _validator_class(document)
    try:
        error = best_match(draft(draft.META_SCHEMA).iter_errors(document))
        if error is not None:
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path)
            raise BadOption(f"is not a valid JSON Schema: {_short(error.message)}", path)
        _check_parts(document)
        # An empty registry: a reference finds only what is in the schema itself.
        return CompiledSchema(_bounded(draft)(document, registry=Registry()))
    except RecursionError:
        raise BadOption("is nested too deeply") from None


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
    except BadOption as error:
        raise BadOption(error.message, path) from None


def _check_reference(root: Any, reference: str, path: str) -> None:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if not reference.startswith("#"):
        raise BadOption(
            f"{quote(reference)} is outside the schema and is never fetched; copy it into $defs", path
        )
    if reference != "#" and not reference.startswith("#/"):
        return  # an anchor; found or missed when the schema is used
    try:
        Registry().resolver_with_root(DRAFT202012.create_resource(root)).lookup(reference)
    except (Unresolvable, ValueError, TypeError):  # the last two for a step into a list or a number
        raise BadOption(f"{quote(reference)} points to nothing in the schema", path) from None


@lru_cache(maxsize=16)
def _bounded(base: Any) -> Any:
    """Derive a validator whose patterns are timed, whose comparisons are linear and whose whole work has an end."""
    from jsonschema import validators

    def with_deadline(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(*arguments: Any) -> Any:
            _running.deadline.check()
            return keyword(*arguments)

        return check

    namespaces: dict[int, dict[str, Any]] = {}
    extend: Any = validators.extend
    return extend(base, {k: with_deadline(_rebind(v, namespaces)) for k, v in base.VALIDATORS.items()})


def _rebind(function: Any, namespaces: dict[int, dict[str, Any]]) -> Any:
    """Copy a keyword's function so that it and its helpers search and compare with ours.

    jsonschema has no other way to replace `re`, which cannot be stopped, short of writing its rules for
    `patternProperties`, `additionalProperties` and `unevaluatedProperties` again for every draft.
    """
    if not isinstance(function, FunctionType):
        return function
    original = function.__globals__
    namespace = namespaces.get(id(original))
    if namespace is None:
        namespace = namespaces[id(original)] = dict(original)
        for name, value in original.items():
            if isinstance(value, FunctionType) and value.__module__.startswith("jsonschema."):
                namespace[name] = _rebind(value, namespaces)
        namespace["re"] = SimpleNamespace(
            search=lambda pattern, text: compile_pattern(pattern).found_in(text, _running.budget)
        )
        # In linear time, where the library compares each with each.
        namespace["uniq"] = lambda items: len(set(map(_identity, items))) == len(items)
    return FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )


def _identity(value: Any) -> Any:
    if isinstance(value, dict):
        return ("map", frozenset((key, _identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_identity(item) for item in value))
    return (isinstance(value, bool), value)
