"""Assertions about the text itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from .base import Assertion, Verdict, option
from .documents import NotJson, are_equal, parse_document
from .limits import CannotCheck
from .options import AnyValue, JsonValue, Pattern, Text, Texts, WordCountRange, WordRange
from .patterns import TimedPattern, shorten
from .subject import Subject

_NOTHING: Any = object()


@dataclass(frozen=True)
class Equals(Assertion):
    """The output is exactly the value, or both are JSON and deeply equal: 1 equals 1.0, true does not equal 1, the order of keys is irrelevant."""

    type = "equals"
    example: ClassVar = {"value": {"status": "ok", "items": [1, 2]}}

    value: str | JsonValue = field(
        metadata=option(
            AnyValue(),
            "What the output must be; a number, bool, null, list or map is compared as JSON.",
            takes_null=True,
        )
    )

    @cached_property
    def _document(self) -> Any:
        if isinstance(self.value, JsonValue):
            return self.value.document
        try:
            return parse_document(self.value)
        except (NotJson, CannotCheck):
            return _NOTHING

    @cached_property
    def _wanted(self) -> str:
        return shorten(self.value.text if isinstance(self.value, JsonValue) else self.value)

    def check(self, subject: Subject) -> Verdict:
        document, wanted = self._document, self._wanted
        if subject.text == self.value:
            return Verdict(True, f"Output equals {wanted}.")
        if document is not _NOTHING:
            try:
                if are_equal(subject.document(), document):
                    return Verdict(True, f"Output equals {wanted} as JSON.")
            except NotJson as fault:
                if isinstance(self.value, JsonValue):
                    return Verdict(False, f"Output is not JSON ({fault}), so it cannot equal {wanted}.")
        return Verdict(False, f"Output is {shorten(subject.text)}, not {wanted}.")


@dataclass(frozen=True)
class _Substring(Assertion):
    """Has a value and two sentences, made once, that say whether it was found."""

    verb: ClassVar[tuple[str, str]] = ("contains", "does not contain")
    suffix: ClassVar[str] = ""

    value: str = field(metadata=option(Text(), "The text to look for."))

    @cached_property
    def _sentences(self) -> tuple[str, str]:
        quoted = shorten(self.value) + self.suffix
        return f"Output {self.verb[1]} {quoted}.", f"Output {self.verb[0]} {quoted}."

    def verdict(self, found: bool) -> Verdict:
        """Say whether the value was found."""
        return Verdict(found, self._sentences[found])


@dataclass(frozen=True)
class Contains(_Substring):
    """The output contains the value, matching case."""

    type = "contains"
    example: ClassVar = {"value": "analysis"}

    def check(self, subject: Subject) -> Verdict:
        return self.verdict(self.value in subject.text)


@dataclass(frozen=True)
class IContains(_Substring):
    """The output contains the value, whatever the case of either (compared by `casefold`)."""

    type = "icontains"
    example: ClassVar = {"value": "summary"}
    suffix = " in any case"

    @cached_property
    def _folded(self) -> str:
        return self.value.casefold()

    def check(self, subject: Subject) -> Verdict:
        return self.verdict(self._folded in subject.note("casefold", str.casefold))


@dataclass(frozen=True)
class StartsWith(_Substring):
    """The output begins with the value."""

    type = "starts-with"
    example: ClassVar = {"value": "Dear"}
    verb = ("starts with", "does not start with")

    def check(self, subject: Subject) -> Verdict:
        return self.verdict(subject.text.startswith(self.value))


@dataclass(frozen=True)
class ContainsAll(Assertion):
    """The output contains every one of the values."""

    type = "contains-all"
    example: ClassVar = {"value": ["price", "delivery"]}

    value: tuple[str, ...] = field(
        metadata=option(Texts(), "The texts to look for; a lone text is a list of one.")
    )

    def check(self, subject: Subject) -> Verdict:
        text = subject.text
        missing = [value for value in self.value if value not in text]
        if len(self.value) == 1:
            verb = "does not contain" if missing else "contains"
            return Verdict(not missing, f"Output {verb} {shorten(self.value[0])}.")
        if not missing:
            return Verdict(True, f"Output contains all {len(self.value):,} values.")
        return Verdict(
            False,
            f"Output lacks {len(missing):,} of {len(self.value):,} values: {_enumerate(missing)}.",
        )


@dataclass(frozen=True)
class ContainsAny(Assertion):
    """The output contains at least one of the values."""

    type = "contains-any"
    example: ClassVar = {"value": ["refund", "replacement"]}

    value: tuple[str, ...] = field(
        metadata=option(Texts(), "The texts to look for; a lone text is a list of one.")
    )

    def check(self, subject: Subject) -> Verdict:
        text = subject.text
        for value in self.value:
            if value in text:
                return Verdict(True, f"Output contains {shorten(value)}.")
        if len(self.value) == 1:
            return Verdict(False, f"Output does not contain {shorten(self.value[0])}.")
        return Verdict(
            False, f"Output contains none of {len(self.value):,} values: {_enumerate(self.value)}."
        )


def _enumerate(values: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(shorten(value, 30) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5:,} more"


@dataclass(frozen=True)
class Regex(Assertion):
    """A regular expression is found in the output (`re.search`)."""

    type = "regex"
    example: ClassVar = {"value": r"\b\d{4}-\d{2}-\d{2}\b"}
    may_be_slow = True

    value: TimedPattern = field(
        metadata=option(
            Pattern(), "A pattern in the syntax of Python's `re`; 250 ms are allowed for the search."
        )
    )

    def prepare(self) -> None:
        super().prepare()
        self.value.build()

    @cached_property
    def _sentences(self) -> tuple[str, str]:
        quoted = shorten(self.value.text)
        return f"Pattern {quoted} is not found in the output.", f"Pattern {quoted} is found in the output."

    def check(self, subject: Subject) -> Verdict:
        found = self.value.found_in(subject.text, subject.budget)
        return Verdict(found, self._sentences[found])


def _count_words(text: str) -> int:
    return len(text.split())


@dataclass(frozen=True)
class WordCount(Assertion):
    """The number of words, split at white space, equals the value or lies in its range."""

    type = "word-count"
    example: ClassVar = {"value": {"min": 50, "max": 200}}
    measures = "words"

    value: WordRange = field(
        metadata=option(WordCountRange(), "The exact count, or a map with `min`, `max` or both.")
    )

    def passing(self) -> tuple[float | None, float | None]:
        return self.value.low, self.value.high

    def check(self, subject: Subject) -> Verdict:
        count: int = subject.note("words", _count_words)
        low, high = self.value.low, self.value.high
        has = f"Output has {count:,} word{'' if count == 1 else 's'}"
        if low is not None and count < low:
            bound = f"exactly {low:,}" if low == high else f"at least {low:,}"
            return Verdict(False, f"{has}; {bound} {_is_or_are(low)} wanted.", None, count)
        if high is not None and count > high:
            bound = f"exactly {high:,}" if low == high else f"at most {high:,}"
            return Verdict(False, f"{has}; {bound} {_is_or_are(high)} wanted.", None, count)
        return Verdict(True, f"{has}, as wanted.", None, count)


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"
