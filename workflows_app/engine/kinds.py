"""The kinds of value a document holds.

Each kind checks a value, describes itself as JSON Schema and names itself for the docs, so that a key
is described once, in `keys.py`, and validator, editor completion and documentation cannot disagree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from .parse import MAX_FAULTS, KeyPath, describe
from .paths import ROOTS, BadPath, did_you_mean, parse_path, scan_template

INVALID: Final[Any] = object()
"""What a check answers after it has reported a fault."""


class Reference(NamedTuple):
    """A value that names something; looked up once everything has been read."""

    what: str  # block, soul, workflow, path or template
    value: str
    at: KeyPath


class TooManyFaults(Exception):
    """Nobody reads that many; looking for more would only take time."""


class Checker:
    """Collects what checking a document finds: faults, and references to look up afterwards."""

    def __init__(self) -> None:
        self.faults: list[tuple[KeyPath, str, int | None]] = []
        self.references: list[Reference] = []

    def fault(self, at: KeyPath, message: str, line_in_text: int | None = None) -> None:
        """Note what is wrong at a path; `line_in_text` points into a text of several lines."""
        self.faults.append((at, message, line_in_text))
        if len(self.faults) >= MAX_FAULTS:
            raise TooManyFaults

    def refer(self, what: str, value: str, at: KeyPath) -> None:
        """Note a reference."""
        self.references.append(Reference(what, value, at))


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
    """A text."""

    max_length: int = 200_000
    min_length: int = 0
    pattern: re.Pattern[str] | None = None
    must_be: str = ""
    reserved: frozenset[str] = frozenset()
    name: str = "text"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if type(value) is not str:
            hint = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
            to.fault(at, f"must be a text, not {describe(value)}{hint}")
            return INVALID
        if not self.min_length <= len(value) <= self.max_length:
            problem = (
                "is empty"
                if not value
                else f"has {len(value)} characters; at most {self.max_length} are allowed"
            )
            to.fault(at, problem)
            return INVALID
        if self.pattern is not None and not self.pattern.fullmatch(value):
            to.fault(at, f"{describe(value)} is not {self.must_be}")
            return INVALID
        if value in self.reserved:
            to.fault(at, f"'{value}' is reserved; choose another name")
            return INVALID
        return value

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

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if super().check(value, at, to) is INVALID:
            return INVALID
        if "{{" in value:
            for problem in scan_template(value)[1]:
                to.fault(at, str(problem), value.count("\n", 0, problem.offset) + 1)
            to.refer("template", value, at)
        return value


@dataclass(frozen=True)
class Path(Text):
    """A dotted path into the context."""

    max_length: int = 500
    name: str = "path"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if super().check(value, at, to) is INVALID:
            return INVALID
        try:
            parse_path(value)
        except BadPath as error:
            to.fault(at, str(error))
            return INVALID
        to.refer("path", value, at)
        return value.strip()


@dataclass(frozen=True)
class Ref(Text):
    """The name of a block, a soul or a workflow."""

    what: str = "block"
    min_length: int = 1
    max_length: int = 200
    name: str = "name"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if super().check(value, at, to) is INVALID:
            return INVALID
        to.refer(self.what, value, at)
        return value


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
            to.fault(at, f"must be a {self.name}, not {describe(value)}")
            return INVALID
        if not self.minimum <= value <= self.maximum or not math.isfinite(value):
            to.fault(
                at,
                f"is {describe(value).removeprefix('the number ')}; it must be from {self.minimum:g} to {self.maximum:,.15g}",
            )
            return INVALID
        return value if self.is_integer else float(value)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "integer" if self.is_integer else "number",
            "minimum": self.minimum,
            "maximum": self.maximum,
        }


@dataclass(frozen=True)
class Boolean(Kind):
    """True or false."""

    name: str = "true or false"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if not isinstance(value, bool):
            to.fault(at, f"must be true or false, not {describe(value)}")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


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
            to.fault(at, f"unknown {self.noun} {shown}{hint}")
        else:
            to.fault(at, f"must be one of {', '.join(self.options)}, not {describe(value)}")
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.options, *self.aliases]}


@dataclass(frozen=True)
class Unsupported(Kind):
    """A key of the original format that has to be empty here."""

    name: str = "must be empty"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if value not in ([], {}, ""):
            to.fault(at, "not supported yet; leave it out")
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "array", "maxItems": 0},
                {"type": "object", "maxProperties": 0},
                {"type": "null"},
            ]
        }


@dataclass(frozen=True)
class Mapped(Kind):
    """Any mapping, or a list of any mappings, kept as it is."""

    is_list: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "list of mappings" if self.is_list else "mapping"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        wanted: type = list if self.is_list else dict
        if not isinstance(value, wanted):
            to.fault(at, f"must be a {'list' if self.is_list else 'mapping'}, not {describe(value)}")
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "object"}} if self.is_list else {"type": "object"}


@dataclass(frozen=True)
class Assertions(Mapped):
    """Assertion entries; the caller's `check_assertions` knows what they mean."""

    is_list: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return "list of assertions"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"$ref": "#/$defs/assertion"}}


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
BLOCK = Ref(what="block", name="block id")
SOUL = Ref(what="soul", name="soul id")
ANYTHING = Kind()
