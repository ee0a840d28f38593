"""Assertions about JSON in the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evals_app.assertions.base import Assertion, Verdict, option
from evals_app.assertions.context import CheckedOutput
from evals_app.assertions.limits import MAX_CANDIDATES, CannotCheck, Deadline
from evals_app.assertions.matching.json_documents import DocumentFinder, NotJson, nested_in
from evals_app.assertions.matching.json_schemas import CompiledSchema, Schema

_SCHEMA_HELP = "What the JSON must look like; left out, null or empty text: any JSON passes."


@dataclass(frozen=True)
class _Structured(Assertion):
    """Has an optional schema."""

    example: ClassVar = {"value": {"type": "object", "required": ["title"]}}
    may_be_slow = True

    value: CompiledSchema | None = field(default=None, metadata=option(Schema(), _SCHEMA_HELP))


@dataclass(frozen=True)
class IsJson(_Structured):
    """The whole output is strict JSON (no NaN), and valid against the schema if there is one."""

    type = "is-json"

    def check(self, output: CheckedOutput) -> Verdict:
        try:
            document = output.document()
        except NotJson as error:
            return Verdict(False, f"Output is not JSON: {error}.")
        if self.value is None:
            return Verdict(True, "Output is JSON.")
        broken = self.value.first_error(document, output.budget, Deadline("The schema check"))
        if broken is None:
            return Verdict(True, "Output is JSON and matches the schema.")
        return Verdict(False, f"Output is JSON but breaks the schema {broken.rstrip('.')}.")


@dataclass(frozen=True)
class ContainsJson(_Structured):
    """Some object or array in the output is strict JSON, and one of those found, or one nested in them, is valid against the schema if there is one."""

    type = "contains-json"

    def check(self, output: CheckedOutput) -> Verdict:
        deadline = Deadline("The search for JSON")
        finder = DocumentFinder(output.text, deadline)
        if self.value is None:
            if any(True for _ in finder):
                return Verdict(True, "Output contains JSON.")
            return self._not_found(finder, "Output contains no JSON object or array.")
        first_error, tried = None, 0
        for tried, candidate in enumerate(_outermost_first(finder), 1):
            if tried > MAX_CANDIDATES:
                raise CannotCheck(
                    f"None of the first {MAX_CANDIDATES:,} JSON values in the output matches the schema "
                    "and there are more; take out the part that matters with a transform."
                )
            error = self.value.first_error(candidate, output.budget, deadline)
            if error is None:
                return Verdict(
                    True, f"Output contains JSON that matches the schema (value {tried:,} of those found)."
                )
            first_error = first_error or error
        if not tried:
            return self._not_found(finder, "Output contains no JSON object or array.")
        return self._not_found(
            finder,
            f"None of the {tried:,} JSON values in the output matches the schema; the first breaks it {first_error}.",
        )

    def _not_found(self, finder: DocumentFinder, reason: str) -> Verdict:
        if finder.unreadable is not None:
            raise CannotCheck(f"{reason} A part could not be read: {finder.unreadable}")
        return Verdict(False, reason)


def _outermost_first(found: DocumentFinder) -> Iterator[Any]:
    """Yield each document as it is found, then what is nested in them, level by level."""
    layer: list[Any] = []
    for document in found:
        yield document
        layer.append(document)
    while layer := nested_in(layer):
        yield from layer
