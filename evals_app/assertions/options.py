"""The kinds of value an option can have: how each is read, and the message when it cannot be."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evals_app.assertions.base import BadOption, json_text
from evals_app.assertions.limits import CannotCheck
from evals_app.assertions.matching.json_documents import NotJson, parse_document
from evals_app.assertions.matching.patterns import TimedPattern, compile_pattern, quote

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


def describe(raw: object) -> str:
    """Name a value of the wrong kind for a message."""
    if raw is None:
        return "null"
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, str):
        return f"the text {quote(raw)}"
    if isinstance(raw, int | float):
        return shorten_number(raw)
    if isinstance(raw, list | tuple):
        return "a list"
    if isinstance(raw, dict):
        return "a map"
    return f"a {type(raw).__name__}"


def shorten_number(number: float) -> str:
    """Write a number for a message, without trailing zeros and without a thousand digits."""
    if isinstance(number, int) and abs(number) < 10**15:
        return f"{number:,}"
    try:
        return f"{float(number):,.6g}"
    except OverflowError:
        return "a number that is too large"


class AnyValue:
    """Anything JSON can express."""

    name = "any"

    def parse(self, raw: Any) -> Any:
        if not isinstance(raw, str):
            return JsonValue(raw)
        with suppress(NotJson):
            _read_json(raw)
        return raw


class JsonValue:
    """A value written as YAML data, to be compared as JSON."""

    __slots__ = ("document", "text")

    def __init__(self, raw: Any) -> None:
        self.text = json_text(raw)
        self.document = _read_json(self.text)


def _read_json(text: str) -> Any:
    """Read JSON as an output is read, so that what no output can equal is refused."""
    try:
        return parse_document(text)
    except CannotCheck as error:
        raise BadOption(f"cannot be compared: {str(error).rstrip('.')}") from None


@dataclass(frozen=True)
class Text:
    """A text; a YAML bool or number means its JSON text."""

    may_be_empty: bool = False
    name: str = "text"

    def parse(self, raw: Any) -> str:
        if isinstance(raw, str):
            if raw or self.may_be_empty:
                return raw
            raise BadOption("is empty, so it would match anything; give some text")
        if isinstance(raw, bool | int | float):
            return json_text(raw)
        raise BadOption(f"must be text, not {describe(raw)}")


@dataclass(frozen=True)
class Texts:
    """A list of texts; a lone text is a list of one."""

    name: str = "list of texts"

    def parse(self, raw: Any) -> tuple[str, ...]:
        if not isinstance(raw, list | tuple):
            return (_TEXT.parse(raw),)
        if not raw:
            raise BadOption("is an empty list; give at least one text")
        items = []
        for index, item in enumerate(raw):
            try:
                items.append(_TEXT.parse(item))
            except BadOption as error:
                raise BadOption(error.message, f"[{index}]") from None
        return tuple(items)


_TEXT = Text()


@dataclass(frozen=True)
class Number:
    """A finite number within bounds; one in quotes counts too."""

    minimum: float | None = None
    maximum: float | None = None
    name: str = "number"

    def parse(self, raw: Any) -> float:
        number = read_number(raw)
        if self.minimum is not None and number < self.minimum:
            raise BadOption(f"must be {self.minimum:g} or more, not {shorten_number(number)}")
        if self.maximum is not None and number > self.maximum:
            raise BadOption(f"must be {self.maximum:g} or less, not {shorten_number(number)}")
        return number


def read_number(raw: Any) -> float:
    """Read a finite number, also one in quotes; a bool is none."""
    if isinstance(raw, str) and _NUMBER.fullmatch(text := raw.strip()):
        raw = float(text)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise BadOption(f"must be a number, not {describe(raw)}")
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadOption("must be a finite number")
    return number


@dataclass(frozen=True)
class WordRange:
    """How many words are right."""

    low: int | None
    high: int | None


class WordCountRange:
    """A whole number, or a map of `min` and `max`, either of which may be missing."""

    name = "count or {min, max}"

    def parse(self, raw: Any) -> WordRange:
        if not isinstance(raw, dict):
            count = _read_count(raw, "must be a whole number or {min, max}")
            return WordRange(count, count)
        for key in raw:
            if key not in ("min", "max"):
                raise BadOption("is unknown here; a word count takes min and max", f".{key}")
        low, high = (self._end(raw, key) for key in ("min", "max"))
        if low is None and high is None:
            raise BadOption("is an empty range; give min, max or both")
        if low is not None and high is not None and low > high:
            raise BadOption(f"min {low:,} is above max {high:,}, so no output can pass")
        return WordRange(low, high)

    def _end(self, raw: dict[Any, Any], key: str) -> int | None:
        value = raw.get(key)
        if value is None:
            return None
        try:
            return _read_count(value, "must be a whole number")
        except BadOption as error:
            raise BadOption(error.message, f".{key}") from None


def _read_count(raw: Any, expected: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise BadOption(f"{expected}, not {describe(raw)}")
    number = read_number(raw)
    if number < 0 or number != int(number):
        raise BadOption(f"{expected} of zero or more, not {describe(raw)}")
    return int(number)


class Pattern:
    """A regular expression in the syntax of Python's `re`."""

    name = "pattern"

    def parse(self, raw: Any) -> TimedPattern:
        return compile_pattern(_TEXT.parse(raw))


class MetricName:
    """A name for a score; empty text means none."""

    name = "name"

    def parse(self, raw: Any) -> str | None:
        if not isinstance(raw, str):
            raise BadOption(f"must be a name, not {describe(raw)}")
        if not raw:
            return None
        if not raw.strip():
            raise BadOption("is empty; give a name or leave it out")
        if not raw.isprintable():
            raise BadOption(f"has characters that cannot be shown: {quote(raw)}")
        return raw
