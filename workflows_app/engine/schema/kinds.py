"""The kinds of value a document holds.

Each kind checks a value, describes itself as JSON Schema and names itself for the docs, so that a key
is described once, in `block_keys.py` or `document_keys.py`, and validator, editor completion and documentation cannot disagree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from workflows_app.engine.parse import MAX_FAULTS, KeyPath, describe
from workflows_app.engine.values.paths import ROOTS, BadPath, did_you_mean, parse_path, scan_template

INVALID: Final[Any] = object()
"""What a check returns after it has reported an error."""


class Reference(NamedTuple):
    """A value that names something; looked up once everything has been read."""

    what: str  # block, soul, workflow, path or template
    value: str
    at: KeyPath


class TooManyFaults(Exception):
    """Nobody reads that many; looking for more would only take time."""


class Checker:
    """Collects the errors in a document, and the references to look up afterwards."""

    def __init__(self) -> None:
        self.faults: list[tuple[KeyPath, str, int | None]] = []
        self.references: list[Reference] = []

    def report(self, at: KeyPath, message: str, line_in_text: int | None = None) -> Any:
        """Note what is wrong at a path; `line_in_text` points into a text of several lines. Returns INVALID."""
        self.faults.append((at, message, line_in_text))
        if len(self.faults) >= MAX_FAULTS:
            raise TooManyFaults
        return INVALID


class Kind:
    """What a value must be."""

    name = "anything"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        """The value as the definition keeps it, or INVALID after reporting why not."""
        return value

    def schema(self) -> dict[str, Any]:
        """The kind as JSON Schema."""
        return {}


@dataclass(frozen=True)
class Text(Kind):
    """A text; with `refers_to` it names something that is looked up afterwards."""

    max_length: int = 200_000
    min_length: int = 0
    pattern: re.Pattern[str] | None = None
    must_be: str = ""
    reserved: frozenset[str] = frozenset()
    name: str = "text"
    refers_to: str = ""

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if type(value) is not str:
            hint = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
            return to.report(at, f"must be a text, not {describe(value)}{hint}")
        if problem := self.problem(value):
            return to.report(at, problem)
        if self.refers_to:
            to.references.append(Reference(self.refers_to, value, at))
        return value

    def problem(self, value: str) -> str | None:
        """What is wrong with a text; None if nothing is."""
        if not self.min_length <= len(value) <= self.max_length:
            if not value:
                return "is empty"
            return f"has {len(value)} characters; at most {self.max_length} are allowed"
        if self.pattern is not None and not self.pattern.fullmatch(value):
            return f"{describe(value)} is not {self.must_be}"
        if value in self.reserved:
            return f"'{value}' is reserved; choose another name"
        return None

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "string"}
        if self.min_length:
            found["minLength"] = self.min_length
        if self.pattern is not None:
            found["pattern"] = f"^{self.pattern.pattern}$"
        if self.reserved:
            found["not"] = {"enum": sorted(self.reserved)}
        return found


@dataclass(frozen=True)
class Template(Text):
    """A text with `{{ path }}` in it."""

    name: str = "template"
    refers_to: str = "template"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        checked = super().check(value, at, to)
        for problem in scan_template(value)[1] if checked is not INVALID else ():
            to.report(at, str(problem), value.count("\n", 0, problem.offset) + 1)
        return checked


@dataclass(frozen=True)
class Path(Text):
    """A dotted path into the context."""

    max_length: int = 500
    name: str = "path"
    refers_to: str = "path"

    def problem(self, value: str) -> str | None:
        try:
            parse_path(value)
        except BadPath as error:
            return super().problem(value) or str(error)
        return super().problem(value)


@dataclass(frozen=True)
class OrNull(Kind):
    """Another kind, or null."""

    kind: Kind

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.kind.name} or null"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        return None if value is None else self.kind.check(value, at, to)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True)
class Number(Kind):
    """A number within bounds."""

    minimum: float
    maximum: float
    is_integer: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{'whole number' if self.is_integer else 'number'}, {self.minimum:g} to {self.maximum:,.15g}"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if self.is_integer and isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int if self.is_integer else (int, float)):
            return to.report(at, f"must be a {self.name}, not {describe(value)}")
        if not self.minimum <= value <= self.maximum or not math.isfinite(value):
            return to.report(
                at,
                f"is {describe(value).removeprefix('the number ')}; it must be from {self.minimum:g} to {self.maximum:,.15g}",
            )
        return value if self.is_integer else float(value)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "integer" if self.is_integer else "number",
            "minimum": self.minimum,
            "maximum": self.maximum,
        }


@dataclass(frozen=True)
class Typed(Kind):
    """A value of one type, kept as it is."""

    type: type
    must_be: str
    json_schema: Mapping[str, Any]
    name: str = "value"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if not isinstance(value, self.type):
            return to.report(at, f"must be {self.must_be}, not {describe(value)}")
        return value

    def schema(self) -> dict[str, Any]:
        return dict(self.json_schema)


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words; `aliases` are accepted spellings of them."""

    options: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    noun: str = "value"

    @property
    def name(self) -> str:  # type: ignore[override]
        return " or ".join(f"`{option}`" for option in self.options)

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if isinstance(value, str):
            if value in self.options:
                return value
            if value in self.aliases:
                return self.aliases[value]
            known = [*self.options, *self.aliases]
            shown = describe(value).removeprefix("the text ")
            hint = did_you_mean(value, known) or f"; known are {', '.join(self.options)}"
            to.report(at, f"unknown {self.noun} {shown}{hint}")
        else:
            to.report(at, f"must be one of {', '.join(self.options)}, not {describe(value)}")
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.options, *self.aliases]}


@dataclass(frozen=True)
class UnsupportedKey(Kind):
    """A key of the original format that has to be empty here."""

    name: str = "must be empty"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if value not in ([], {}, ""):
            to.report(at, "not supported yet; leave it out")
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "array", "maxItems": 0},
                {"type": "object", "maxProperties": 0},
                {"type": "null"},
            ]
        }


BOOLEAN = Typed(bool, "true or false", {"type": "boolean"}, "true or false")
MAPPING = Typed(dict, "a mapping", {"type": "object"}, "mapping")
# What assertions mean is known to the caller's `check_assertions`.
ASSERTIONS = Typed(
    list, "a list", {"type": "array", "items": {"$ref": "#/$defs/assertion"}}, "list of assertions"
)
ID_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
ID = Text(
    max_length=80,  # so that `<block>.<branch>` fits into a node's id
    min_length=1,
    pattern=ID_PATTERN,
    must_be="a name of letters, digits, '_' and '-' that begins with a letter",
    name="name",
)
FREE_ID = replace(ID, reserved=ROOTS)
"""An id that is not the beginning of other paths."""
SHORT_TEXT = Text(max_length=200)
LONG_TEXT = Text()
PATH = Path()
BLOCK = Text(max_length=200, min_length=1, name="block id", refers_to="block")
SOUL = replace(BLOCK, name="soul id", refers_to="soul")
ANYTHING = Kind()
