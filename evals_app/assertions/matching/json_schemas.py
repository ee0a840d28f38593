"""JSON Schemas: checked when read, built once, and never slower than their limits or fetched from anywhere."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

from evals_app.assertions.base import BadOption
from evals_app.assertions.limits import CannotCheck, Deadline, PatternBudget
from evals_app.assertions.matching.json_documents import are_equal
from evals_app.assertions.matching.patterns import compile_pattern, quote
from evals_app.assertions.options import JsonValue, describe

_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DATA_KEYWORDS = frozenset({"const", "enum", "default", "examples"})
#: Keywords whose value is a map from any name to a schema.
_MAP_KEYWORDS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_running = threading.local()


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema that is known to be valid, ready to check values."""

    validator: Any

    def first_error(self, instance: Any, budget: PatternBudget, deadline: Deadline) -> str | None:
        """Say what is wrong with a value, or return None when it is valid."""
        from referencing.exceptions import Unresolvable

        try:
            with _limits(budget, deadline):
                error = next(self.validator.iter_errors(instance), None)
        except Unresolvable as missing:
            raise CannotCheck(
                f"The schema refers to something it does not contain: {_short(missing)}."
            ) from None
        return None if error is None else f"at {error.json_path}: {_short(error.message)}"


@contextmanager
def _limits(budget: PatternBudget, deadline: Deadline) -> Iterator[None]:
    """Let a validator of this thread work within these limits."""
    _running.budget, _running.deadline = budget, deadline
    try:
        yield
    except RecursionError:
        raise CannotCheck(_TOO_DEEP) from None
    finally:
        del _running.budget, _running.deadline


_TOO_DEEP = "The schema or the JSON recurses too deeply to be checked."


def _refuse_deep_stack() -> None:
    """Stop while there is room left: a library written in Rust panics where the interpreter's stack ends."""
    try:
        # Some calls count for the interpreter without having a frame; never more than one beside two that have.
        sys._getframe(sys.getrecursionlimit() * 2 // 3)
    except ValueError:
        return
    raise CannotCheck(_TOO_DEEP)


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
    from jsonschema_specifications import REGISTRY

    document = json.loads(text)
    draft = _validator_class(document)
    bounded = _bounded(draft)
    try:
        with _limits(PatternBudget(), Deadline("Reading the schema")):
            error = best_match(bounded(draft.META_SCHEMA, registry=REGISTRY).iter_errors(document))
        if error is not None:
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path)
            raise BadOption(f"is not a valid JSON Schema: {_short(error.message)}", path)
        _check_parts(document, draft)
    except (CannotCheck, RecursionError):
        raise BadOption("is nested too deeply or too large") from None
    # A reference finds what is in the schema itself and the drafts' own schemas; nothing else is looked for.
    return CompiledSchema(bounded(document, registry=REGISTRY))


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


def _check_parts(root: Any, draft: Any) -> None:
    """Compile every pattern and resolve every reference, wherever a schema can stand."""
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import specification_with

    specification = specification_with(draft.META_SCHEMA.get("$id") or draft.META_SCHEMA["id"])
    resource = specification.create_resource(root)
    resolver = REGISTRY.with_resource(resource.id() or "", resource).crawl().resolver(resource.id() or "")
    stack: list[tuple[str, Any, Any]] = [("", root, resolver)]
    while stack:
        path, node, around = stack.pop()
        if isinstance(node, list):
            stack.extend((f"{path}[{i}]", item, around) for i, item in enumerate(node))
        if not isinstance(node, dict):
            continue
        inside = around.in_subresource(specification.create_resource(node)) if node is not root else around
        if isinstance(node.get("pattern"), str):
            _check_pattern(node["pattern"], f"{path}.pattern")
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(node.get(keyword), str):
                _check_reference(inside, node[keyword], f"{path}.{keyword}")
        for key, value in node.items():
            if key in _MAP_KEYWORDS and isinstance(value, dict):
                if key == "patternProperties":
                    for pattern in value:
                        _check_pattern(pattern, f"{path}.{key}")
                stack.extend((f"{path}.{key}.{name}", part, inside) for name, part in value.items())
            elif key not in _DATA_KEYWORDS:
                stack.append((f"{path}.{key}", value, inside))


def _check_pattern(pattern: str, path: str) -> None:
    try:
        compile_pattern(pattern, unicode_properties=True)
    except BadOption as error:
        raise BadOption(error.message, path) from None


def _check_reference(resolver: Any, reference: str, path: str) -> None:
    from referencing.exceptions import Unresolvable

    try:
        resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError):  # the last two for a step into a list or a number
        if reference.startswith("#"):
            raise BadOption(f"{quote(reference)} points to nothing in the schema", path) from None
        raise BadOption(
            f"{quote(reference)} is outside the schema and is never fetched; copy it into $defs", path
        ) from None


@lru_cache(maxsize=16)
def _bounded(base: Any) -> Any:
    """Derive a validator whose patterns are timed, whose comparisons are linear and whose whole work has an end."""
    from jsonschema import validators

    extend: Any = validators.extend
    namespaces: dict[int, dict[str, Any]] = {}
    keywords = {name: _rebind(function, namespaces) for name, function in base.VALIDATORS.items()}
    for name in {"multipleOf", "divisibleBy"} & keywords.keys():
        keywords[name] = _multiple_of
    bounded: Any = extend(base, keywords)
    settings = [(field.name, field.alias) for field in bounded.__attrs_attrs__ if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        # Each step into a part of the schema or of the value comes by here.
        _running.deadline.check()
        _refuse_deep_stack()
        values = {alias: getattr(self, name) for name, alias in settings} | changes
        named = values["schema"].get("$schema") if isinstance(values["schema"], dict) else None
        if not isinstance(named, str):
            return bounded(**values)
        draft: Any = validators.validator_for({"$schema": named}, default=base)
        return _bounded(draft)(**values)

    bounded.evolve = evolve
    return bounded


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """What the library does, also for integers that are too large for a float."""
    from fractions import Fraction

    from jsonschema import Draft202012Validator, ValidationError

    library: Any = Draft202012Validator.VALIDATORS["multipleOf"]
    try:
        yield from library(validator, factor, instance, schema)
    except OverflowError:
        if Fraction(instance) % Fraction(factor):
            yield ValidationError(f"{instance!r} is not a multiple of {factor}")


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
            if name.startswith("find_evaluated_"):
                namespace[name] = _as_set(namespace[name])
        namespace["re"] = SimpleNamespace(search=_is_found)
        namespace["find_additional_properties"] = _find_additional_properties
        namespace["equal"] = are_equal
        # In linear time, where the library compares each with each.
        namespace["uniq"] = lambda items: len(set(map(_identity, items))) == len(items)
    return FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )


def _is_found(pattern: str, text: str) -> bool:
    return compile_pattern(pattern, unicode_properties=True).found_in(text, _running.budget)


def _find_additional_properties(instance: Any, schema: Any) -> Iterator[str]:
    """As the library does, but pattern by pattern: joined, they change each other's groups and flags."""
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name not in properties and not any(_is_found(pattern, name) for pattern in patterns):
            yield name


def _as_set(find: Callable[..., Any]) -> Callable[..., Any]:
    """The library asks for each entry whether it is in a list of thousands."""
    return lambda *arguments: set(find(*arguments))


def _identity(value: Any) -> Any:
    if isinstance(value, dict):
        return ("map", frozenset((key, _identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_identity(item) for item in value))
    return (isinstance(value, bool), value)
