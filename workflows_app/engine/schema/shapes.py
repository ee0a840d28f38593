"""Kinds made of other kinds: lists, mappings of one kind, and mappings with known keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workflows_app.engine.parse import KeyPath, describe
from workflows_app.engine.schema.kinds import INVALID, Checker, Choice, Kind, Number, OrNull, Text
from workflows_app.engine.values.paths import did_you_mean


class Items(tuple[Any, ...]):
    """The valid items of a list, which remember where they stood."""

    places: list[int]

    def __new__(cls, found: list[Any]) -> Items:
        kept = [(index, item) for index, item in enumerate(found) if item is not INVALID]
        items = super().__new__(cls, (item for _, item in kept))
        items.places = [index for index, _ in kept]
        return items


def placed(items: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """The items of a list with the index each had in the document."""
    return zip(items.places if isinstance(items, Items) else range(len(items)), items, strict=True)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list; where `or_one` is set, one item may stand for a list of one."""

    item: Kind
    min_items: int = 0
    max_items: int = 10_000
    or_one: bool = False
    is_unique: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.item.name} or a list of them" if self.or_one else f"list of {self.item.name}"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if not isinstance(value, list):
            if self.or_one:
                checked = self.item.check(value, at, to)
                return INVALID if checked is INVALID else (checked,)
            return to.report(at, f"must be a list, not {describe(value)}")
        if not self.min_items <= len(value) <= self.max_items:
            is_short = len(value) < self.min_items
            wanted = f"at least {self.min_items} needed" if is_short else f"at most {self.max_items} allowed"
            to.report(at, f"has {len(value)} items; {wanted}")
        items = Items([self.item.check(item, (*at, index), to) for index, item in enumerate(value)])
        seen: set[Any] = set()
        for index, item in placed(items) if self.is_unique else ():
            if item in seen:
                to.report((*at, index), f"{describe(item).removeprefix('the text ')} is listed twice")
            seen.add(item)
        return items

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "array", "items": self.item.schema()}
        if self.min_items:
            found["minItems"] = self.min_items
        if self.is_unique:
            found["uniqueItems"] = True
        return {"anyOf": [self.item.schema(), found]} if self.or_one else found


@dataclass(frozen=True)
class MapOf(Kind):
    """A mapping from names to one kind of value."""

    value: Kind
    key: Text = field(default_factory=Text)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"mapping of name to {self.value.name}"

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if not isinstance(value, dict):
            return to.report(at, f"must be a mapping, not {describe(value)}")
        found = {}
        for key, item in value.items():
            if self.key.check(key, (*at, key), to) is INVALID:
                continue
            checked = self.value.check(item, (*at, key), to)
            if checked is not INVALID:
                found[key] = checked
        return found

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "object", "additionalProperties": self.value.schema()}
        if self.key.pattern is not None:
            found["propertyNames"] = self.key.schema()
        return found


@dataclass(frozen=True)
class Key:
    """One key of a mapping."""

    kind: Kind
    description: str
    is_required: bool = False
    aliases: tuple[str, ...] = ()
    attribute: str = ""  # the definition's name for it, where it differs


@dataclass(frozen=True)
class Shape(Kind):
    """A mapping with known keys; `shorthand` is a key that may stand alone for the whole mapping."""

    name: str
    keys: Mapping[str, Key] = field(default_factory=dict)
    shorthand: str = ""
    extra: Kind | None = None

    @cached_property
    def _spellings(self) -> dict[str, str]:
        return {spelling: name for name, key in self.keys.items() for spelling in (name, *key.aliases)}

    @cached_property
    def _required(self) -> tuple[str, ...]:
        return tuple(name for name, key in self.keys.items() if key.is_required)

    def check(self, value: Any, at: KeyPath, to: Checker) -> Any:
        if not isinstance(value, dict):
            if self.shorthand and value is not None:
                checked = self.keys[self.shorthand].kind.check(value, at, to)
                return INVALID if checked is INVALID else {self.shorthand: checked}
            return to.report(at, f"must be a mapping ({self.name}), not {describe(value)}")
        found = self.check_keys(value, at, to)
        return INVALID if any(name not in found for name in self._required) else found

    def check_keys(self, value: dict[str, Any], at: KeyPath, to: Checker) -> dict[str, Any]:
        """The valid keys of a mapping, by their main name; null means the default."""
        found: dict[str, Any] = {}
        written: dict[str, str] = {}
        for spelling, item in value.items():
            name = self._spellings.get(spelling, spelling)
            kind = self.keys[name].kind if name in self.keys else self.extra
            if name in written:
                to.report((*at, spelling), f"'{spelling}' and '{written[name]}' mean the same; keep one")
            written[name] = spelling
            if kind is None:
                hint = did_you_mean(spelling, self._spellings) or f"; known are {', '.join(self.keys)}"
                to.report((*at, spelling), f"unknown key '{str(spelling)[:60]}'{hint}")
            elif item is not None or isinstance(kind, OrNull):
                checked = kind.check(item, (*at, spelling), to)
                if checked is not INVALID:
                    found[name] = checked
        for name in self._required:
            if name not in written or value[written[name]] is None:
                to.report(
                    (*at, written.get(name, name)),
                    f"is missing; {self.keys[name].description[:1].lower()}{self.keys[name].description[1:]}",
                )
        return found

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": "object",
            "properties": {
                spelling: _optional(self.keys[name]) for spelling, name in self._spellings.items()
            },
            "additionalProperties": False if self.extra is None else self.extra.schema(),
        }
        if required := [name for name in self._required if not self.keys[name].aliases]:
            found["required"] = required
        if either := [
            {"anyOf": [{"required": [spelling]} for spelling in (name, *self.keys[name].aliases)]}
            for name in self._required
            if self.keys[name].aliases
        ]:
            found["allOf"] = either
        return {"anyOf": [self.keys[self.shorthand].kind.schema(), found]} if self.shorthand else found


def _optional(key: Key) -> dict[str, Any]:
    """A key's schema with its description; an optional key may be null."""
    inner = key.kind.schema()
    if not key.is_required and inner:
        inner = {"anyOf": [inner, {"type": "null"}]}
    return {**inner, "description": key.description}


LIMITS = Shape(
    "limits",
    {
        "cost_cap_usd": Key(Number(0, 1_000_000), "What may be spent, in dollars."),
        "token_cap": Key(Number(1, 1_000_000_000, is_integer=True), "How many tokens may be used."),
        "max_duration_seconds": Key(Number(0.1, 86_400), "How long it may take."),
        "on_exceed": Key(Choice(("fail", "warn")), "What happens when a cap does not allow the next call."),
    },
)
