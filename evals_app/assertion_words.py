"""What an assertion asks for, in a few words: the same on every page and in every report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workflows_app.display import formats

LONGEST_VALUE = 160
LONGEST_LINE = 60
AT_MOST = frozenset({"cost", "latency", "levenshtein"})
AT_LEAST = frozenset({"bleu", "rouge-n"})
IN_UNITS = {
    "cost": formats.cost,
    "latency": formats.duration,
    "bleu": formats.score,
    "rouge-n": formats.score,
}


def shorten(text: str, longest: int) -> str:
    """A text on one line, its end cut off where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: max(longest - 1, 0)] + "…"


def kind_of(config: Mapping[str, Any]) -> str:
    """The type of an assertion, negated or not."""
    return str(config.get("type", "?")).removeprefix("not-")


def number_text(kind: str, number: float) -> str:
    """A number that an assertion measured or is limited by, with its unit."""
    if kind in IN_UNITS:
        return IN_UNITS[kind](number)
    return f"{number:,.4g}" if isinstance(number, float) and number % 1 else f"{number:,.0f}"


def full_value(config: Mapping[str, Any]) -> str:
    """What an assertion compares with, as text."""
    value = config.get("value")
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def limit(config: Mapping[str, Any]) -> str:
    """The number that an assertion allows: `at most $0.05`, `2 to 5 words`; nothing where it has none."""
    kind, threshold, words = kind_of(config), config.get("threshold"), config.get("value")
    if threshold is not None and (kind in AT_MOST or kind in AT_LEAST):
        bound = number_text(kind, threshold) if isinstance(threshold, int | float) else threshold
        return f"{'at most' if kind in AT_MOST else 'at least'} {bound}"
    if kind == "word-count" and isinstance(words, dict):
        low, high = words.get("min"), words.get("max")
        if low is not None and high is not None:
            return f"{low} to {high} words"
        bound, side = (low, "at least") if low is not None else (high, "at most")
        return f"{side} {bound} word{'' if bound == 1 else 's'}"
    return ""


def expected(config: Mapping[str, Any]) -> str:
    """What the assertion asked for, short."""
    value = full_value(config)
    if kind_of(config) in ("is-json", "contains-json") and value:
        return "JSON that fits the schema"
    return limit(config) or (value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…")


def asks(config: Mapping[str, Any]) -> str:
    """What an assertion requires, in a line beside its type."""
    text_beside = full_value(config) if config.get("threshold") is not None else ""
    parts = (text_beside, expected(config), str(config.get("transform") or ""))
    return shorten(" · ".join(part for part in parts if part), LONGEST_LINE)
