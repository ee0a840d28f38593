"""Assertions about how close the output is to a reference."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from evals_app.assertions.base import Assertion, BadOption, Verdict, option
from evals_app.assertions.context import CheckedOutput
from evals_app.assertions.limits import MAX_DISTANCE_WORK, CannotCheck, Deadline
from evals_app.assertions.options import Number, Text, shorten_number

_ORDERS = 4
# Small enough that the exact distance costs a few microseconds even when it is far above the threshold.
_EXACT_CELLS = 250_000
# A run of letters and digits; ideographs and hiragana, written without spaces, are words each.
_LONE = "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_LONE}]|[^\W_{_LONE}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SPACE = re.compile(r"\s")
_SPACE_OR_LONE = re.compile(rf"[\s{_LONE}]")
# Characters that are split into words at a time.
_PIECE = 200_000


@dataclass(frozen=True)
class Levenshtein(Assertion):
    """The edit distance between output and value, in characters, is at most the threshold."""

    type = "levenshtein"
    example: ClassVar = {"value": "The capital of France is Paris.", "threshold": 3}
    may_be_slow = True
    measures = "characters"

    value: str = field(metadata=option(Text(may_be_empty=True), "The reference text; it may be empty."))
    threshold: float = field(
        default=5, metadata=option(Number(minimum=0), "The largest distance that passes, in characters.")
    )

    def passing(self) -> tuple[float | None, float | None]:
        return None, self.threshold

    def check(self, output: CheckedOutput) -> Verdict:
        limit = shorten_number(self.threshold)
        distance = self._distance(output.text)
        if distance is None:
            return Verdict(False, f"Edit distance is more than {limit}.")
        word = "within" if distance <= self.threshold else "above"
        reason = f"Edit distance is {distance:,}, {word} the limit of {limit}."
        return Verdict(distance <= self.threshold, reason, None, distance)

    def _distance(self, text: str) -> int | None:
        """Return the distance, or None when all that is known is that it is above the threshold."""
        from rapidfuzz.distance import Levenshtein as Distance

        if text == self.value:
            return 0
        mine, other = len(text), len(self.value)
        if mine * other <= _EXACT_CELLS:
            return int(Distance.distance(text, self.value))
        if abs(mine - other) > self.threshold:
            return None
        cutoff = int(min(self.threshold, max(mine, other)))
        if min(mine, other) * min(2 * cutoff + 1, max(mine, other)) / 64 > MAX_DISTANCE_WORK:
            raise CannotCheck(
                f"Texts of {mine:,} and {other:,} characters are too long to compare "
                f"with a threshold of {shorten_number(self.threshold)}; lower it or compare a part."
            )
        distance = int(Distance.distance(text, self.value, score_cutoff=cutoff))
        return distance if distance <= cutoff else None


def _ngrams(tokens: list[str], order: int) -> Iterable[Any]:
    return tokens if order == 1 else zip(*(islice(tokens, i, None) for i in range(order)), strict=False)


def _bleu_tokens(text: str) -> list[str]:
    return text.lower().split()


def _pieces(text: str, after: re.Pattern[str], deadline: Deadline) -> Iterator[str]:
    """Cut a text into pieces, each ending where a word ends: a huge one never becomes one huge list of words."""
    at = 0
    while at < len(text):
        deadline.check()
        found = after.search(text, at + _PIECE)
        end = found.end() if found else len(text)
        yield text[at:end]
        at = end


def _count_known(counts: Counter[Any], reference: Counter[Any], grams: Iterable[Any]) -> None:
    """Count the n-grams that the reference has too: a huge output needs no huge table."""
    counts.update(filter(reference.__contains__, grams))


class _Reference(Text):
    """A text with at least one word."""

    def parse(self, raw: Any) -> str:
        text = super().parse(raw)
        if text.isspace() or _WORD.search(text) is None:
            raise BadOption("has no words to compare with")
        return text


@dataclass(frozen=True)
class _Score(Assertion):
    """Compares a score with the lowest that passes."""

    name: ClassVar[str] = ""
    may_be_slow = True
    measures = "score"

    value: str = field(metadata=option(_Reference(), "The reference text."))
    threshold: float = field(default=0.5, metadata=option(Number(0, 1), "The lowest score that passes."))

    def passing(self) -> tuple[float | None, float | None]:
        return self.threshold, None

    def compare(self, score: float) -> Verdict:
        """Compare a score with the threshold."""
        passed = score >= self.threshold
        # As many digits as it takes to see on which side of the threshold the score lies.
        shown = f"{score:.3f}" if (round(score, 3) >= self.threshold) is passed else repr(score)
        word = "at or above" if passed else "below"
        reason = f"{self.name} is {shown}, {word} the threshold of {self.threshold:g}."
        return Verdict(passed, reason, score, score)


@dataclass(frozen=True)
class Bleu(_Score):
    """BLEU-4 against the value reaches the threshold: lower-cased words split at white space, add-one smoothing above single words (nltk's `method2`); identical texts score 1.0."""

    type = "bleu"
    example: ClassVar = {"value": "The cat sat on the mat.", "threshold": 0.6}
    name = "BLEU"

    threshold: float = field(
        default=0.5, metadata=option(Number(0, 1), "The lowest BLEU that passes, 0 to 1.")
    )

    @cached_property
    def _tokens(self) -> list[str]:
        return _bleu_tokens(self.value)

    @cached_property
    def _counts(self) -> list[Counter[Any]]:
        return [Counter(_ngrams(self._tokens, order)) for order in range(1, _ORDERS + 1)]

    def check(self, output: CheckedOutput) -> Verdict:
        return self.compare(self._score(output.text))

    def _score(self, text: str) -> float:
        from nltk.translate.bleu_score import brevity_penalty

        found: list[Counter[Any]] = [Counter() for _ in self._counts]
        length, is_same, before = 0, True, list[str]()
        for piece in _pieces(text, _SPACE, Deadline("The comparison by BLEU")):
            words = _bleu_tokens(piece)
            is_same = is_same and words == self._tokens[length : length + len(words)]
            length += len(words)
            words = before + words
            for order, (counts, reference) in enumerate(zip(found, self._counts, strict=True), 1):
                fresh = words[max(0, len(before) - order + 1) :]
                _count_known(counts, reference, _ngrams(fresh, order))
            before = words[1 - _ORDERS :]
        if is_same and length == len(self._tokens):
            return 1.0
        logs = []
        for order, (counts, reference) in enumerate(zip(found, self._counts, strict=True), 1):
            matches = (counts & reference).total()
            total = max(1, length - order + 1)
            if order == 1:
                if matches == 0:
                    return 0.0
                logs.append(math.log(matches / total))
            else:
                logs.append(math.log((matches + 1) / (total + 1)))
        penalty: float = brevity_penalty(len(self._tokens), length)
        return min(1.0, penalty * math.exp(math.fsum(logs) / _ORDERS))


def _rouge_tokens(text: str) -> list[str]:
    lowered = text.lower()
    return (_ASCII_WORD if lowered.isascii() else _WORD).findall(lowered)


@dataclass(frozen=True)
class RougeN(_Score):
    """The ROUGE-1 F-measure against the value reaches the threshold, over Unicode words in lower case."""

    type = "rouge-n"
    example: ClassVar = {"value": "The cat sat on the mat.", "threshold": 0.8}
    name = "ROUGE-1"

    threshold: float = field(
        default=0.75, metadata=option(Number(0, 1), "The lowest F-measure that passes, 0 to 1.")
    )

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(_rouge_tokens(self.value))

    def check(self, output: CheckedOutput) -> Verdict:
        from rouge_score import scoring

        counts: Counter[str] = Counter()
        length = 0
        for piece in _pieces(output.text, _SPACE_OR_LONE, Deadline("The comparison by ROUGE")):
            words = _rouge_tokens(piece)
            length += len(words)
            _count_known(counts, self._counts, words)
        matches = (counts & self._counts).total()
        score: float = scoring.fmeasure(matches / max(1, length), matches / self._counts.total())
        return self.compare(min(1.0, score))
