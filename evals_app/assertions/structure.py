"""Assertions about JSON in the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

from .base import Assertion, Verdict, option
from .documents import DocumentFinder, NotJson
from .limits import MAX_CANDIDATES, CannotCheck, Deadline
from .schemas import CompiledSchema, Schema
from .subject import Subject

_SCHEMA_HELP = "What the JSON must look like; left out, null or empty text: any JSON will do."
_EXAMPLE = {"value": {"type": "object", "required": ["title"]}}


@dataclass(frozen=True)
class _Structured(Assertion):
    """Has an optional schema, built when compiled."""

    may_be_slow = True

    value: CompiledSchema | None = field(default=None, metadata=option(Schema(), _SCHEMA_HELP))

    def prepare(self) -> None:
        super().prepare()
        if self.value is not None:
            self.value.build()


@dataclass(frozen=True)
class IsJson(_Structured):
    """The whole output is strict JSON (no NaN), and valid against the schema if there is one."""

    type = "is-json"
    example: ClassVar = _EXAMPLE

    def check(self, subject: Subject) -> Verdict:
        try:
            document = subject.document()
        except NotJson as why:
            return Verdict(False, f"Output is not JSON: {why}.")
        if self.value is None:
            return Verdict(True, "Output is JSON.")
        fault = self.value.first_fault(document, subject.budget, Deadline("The schema check"))
        if fault is None:
            return Verdict(True, "Output is JSON and matches the schema.")
        return Verdict(False, f"Output is JSON but breaks the schema {fault.rstrip('.')}.")


@dataclass(frozen=True)
class ContainsJson(_Structured):
    """Some object or array in the output is strict JSON, and one of those found, or one nested in them, is valid against the schema if there is one."""

    type = "contains-json"
    example: ClassVar = _EXAMPLE

    def check(self, subject: Subject) -> Verdict:
        deadline = Deadline("The search for JSON")
        finder = DocumentFinder(subject.text, deadline)
        if self.value is None:
            if any(True for _ in finder):
                return Verdict(True, "Output contains JSON.")
            return self._nothing(finder, "Output contains no JSON object or array.")
        first_fault, tried = None, 0
        for tried, candidate in enumerate(_outermost_first(finder), 1):
            if tried > MAX_CANDIDATES:
                raise CannotCheck(
                    f"None of the first {MAX_CANDIDATES:,} JSON values in the output matches the schema "
                    "and there are more; take out the part that matters with a transform."
                )
            fault = self.value.first_fault(candidate, subject.budget, deadline)
            if fault is None:
                return Verdict(
                    True, f"Output contains JSON that matches the schema (value {tried:,} of those found)."
                )
            first_fault = first_fault or fault
        if not tried:
            return self._nothing(finder, "Output contains no JSON object or array.")
        return self._nothing(
            finder,
            f"None of the {tried:,} JSON values in the output matches the schema; the first breaks it {first_fault}.",
        )

    def _nothing(self, finder: DocumentFinder, reason: str) -> Verdict:
        if finder.unreadable is not None:
            raise CannotCheck(f"{reason} A part could not be read: {finder.unreadable}")
        return Verdict(False, reason)


def _outermost_first(found: DocumentFinder) -> Iterator[Any]:
    """Yield each document as it is found, then what is nested in them, level by level."""
    layer: list[Any] = []
    for document in found:
        yield document
        layer.append(document)
    while layer:
        layer = list(chain.from_iterable(map(_containers_in, layer)))
        yield from layer


def _containers_in(parent: Any) -> list[Any]:
    children = parent.values() if isinstance(parent, dict) else parent
    return [child for child in children if isinstance(child, dict | list)]
