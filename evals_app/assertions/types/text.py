"""Assertions about the text itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from evals_app.assertions.base import Assertion, Verdict, option
from evals_app.assertions.context import CheckedOutput
from evals_app.assertions.limits import CannotCheck
from evals_app.assertions.matching.json_documents import NotJson, are_equal, parse_document
from evals_app.assertions.matching.patterns import TimedPattern, quote
from evals_app.assertions.options import AnyValue, JsonValue, Pattern, Text, Texts, WordCountRange, WordRange

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

    def check(self, output: CheckedOutput) -> Verdict:
        document = self._document
        wanted = quote(self.value.text if isinstance(self.value, JsonValue) else self.value)
        if output.text == self.value:
            return Verdict(True, f"Output equals {wanted}.")
        if document is not _NOTHING:
            try:
                if are_equal(output.document(), document):
                    return Verdict(True, f"Output equals {wanted} as JSON.")
            except NotJson as error:
                if isinstance(self.value, JsonValue):
                    return Verdict(False, f"Output is not JSON ({error}), so it cannot equal {wanted}.")
        return Verdict(False, f"Output is {quote(output.text)}, not {wanted}.")


@dataclass(frozen=True)
class _Substring(Assertion):
    """Has a value that is found or not."""

    verb: ClassVar[tuple[str, str]] = ("contains", "does not contain")
    suffix: ClassVar[str] = ""

    value: str = field(metadata=option(Text(), "The text to look for."))

    def verdict(self, found: bool) -> Verdict:
        """Say whether the value was found."""
        return Verdict(found, f"Output {self.verb[not found]} {quote(self.value)}{self.suffix}.")


@dataclass(frozen=True)
class Contains(_Substring):
    """The output contains the value, matching case."""

    type = "contains"
    example: ClassVar = {"value": "analysis"}

    def check(self, output: CheckedOutput) -> Verdict:
        return self.verdict(self.value in output.text)


@dataclass(frozen=True)
class IContains(_Substring):
    """The output contains the value, whatever the case of either (compared by `casefold`)."""

    type = "icontains"
    example: ClassVar = {"value": "summary"}
    suffix = " in any case"

    @cached_property
    def _folded(self) -> str:
        return self.value.casefold()

    def check(self, output: CheckedOutput) -> Verdict:
        return self.verdict(self._folded in output.derived("casefold", str.casefold))


@dataclass(frozen=True)
class StartsWith(_Substring):
    """The output begins with the value."""

    type = "starts-with"
    example: ClassVar = {"value": "Dear"}
    verb = ("starts with", "does not start with")

    def check(self, output: CheckedOutput) -> Verdict:
        return self.verdict(output.text.startswith(self.value))


@dataclass(frozen=True)
class _Substrings(Assertion):
    """Has several values."""

    value: tuple[str, ...] = field(
        metadata=option(Texts(), "The texts to look for; a lone text is a list of one.")
    )


@dataclass(frozen=True)
class ContainsAll(_Substrings):
    """The output contains every one of the values."""

    type = "contains-all"
    example: ClassVar = {"value": ["price", "delivery"]}

    def check(self, output: CheckedOutput) -> Verdict:
        text = output.text
        missing = [value for value in self.value if value not in text]
        if len(self.value) == 1:
            verb = "does not contain" if missing else "contains"
            return Verdict(not missing, f"Output {verb} {quote(self.value[0])}.")
        if not missing:
            return Verdict(True, f"Output contains all {len(self.value):,} values.")
        lacks = f"{len(missing):,} of {len(self.value):,} values: {_enumerate(missing)}"
        return Verdict(False, f"Output lacks {lacks}.")


@dataclass(frozen=True)
class ContainsAny(_Substrings):
    """The output contains at least one of the values."""

    type = "contains-any"
    example: ClassVar = {"value": ["refund", "replacement"]}

    def check(self, output: CheckedOutput) -> Verdict:
        text = output.text
        for value in self.value:
            if value in text:
                return Verdict(True, f"Output contains {quote(value)}.")
        if len(self.value) == 1:
            return Verdict(False, f"Output does not contain {quote(self.value[0])}.")
        return Verdict(
            False, f"Output contains none of {len(self.value):,} values: {_enumerate(self.value)}."
        )


def _enumerate(values: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(quote(value, 30) for value in values[:5])
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

    def check(self, output: CheckedOutput) -> Verdict:
        found = self.value.found_in(output.text, output.budget)
        word = "found" if found else "not found"
        return Verdict(found, f"Pattern {quote(self.value.text)} is {word} in the output.")


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

    def check(self, output: CheckedOutput) -> Verdict:
        count: int = output.derived("words", lambda text: len(text.split()))
        low, high = self.value.low, self.value.high
        has = f"Output has {count:,} word{'' if count == 1 else 's'}"
        if low is not None and count < low:
            word, bound = "at least", low
        elif high is not None and count > high:
            word, bound = "at most", high
        else:
            return Verdict(True, f"{has}, as wanted.", None, count)
        wanted = f"{'exactly' if low == high else word} {bound:,} {'is' if bound == 1 else 'are'} wanted"
        return Verdict(False, f"{has}; {wanted}.", None, count)
