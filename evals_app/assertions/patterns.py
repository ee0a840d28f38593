"""Patterns as `re` understands them, searched by a matcher that can be stopped."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .limits import MAX_PATTERN_LENGTH, CannotCheck, PatternBudget

# The parts of a pattern that must not be torn apart; everything else is a character.
_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-9]{1,3}|.))"
    r"|(?P<comment>\(\?#[^)]*\))"
    r"|(?P<group>\(\?(?:P<\w+>|P=\w+\)|\(\w+\)|<?[=!]|[a-zA-Z-]*[:)]|>))"
    r"|(?P<quantifier>(?:\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\}|[*+?])[?+]?)",
    re.DOTALL,
)
_LITERAL_RUN = 100
_ALWAYS = "(?!(?!))"
_VERBOSE = re.compile(r"\(\?[a-z]*x")
# What `re` and the matcher surely both compile: compiling for the matcher, which is slow, can then wait.
_PLAIN = re.compile(
    r"(?:[^\\\[\](){}?*+|^$.]"
    r"|\\[dDwWsSbBAZnrt.\\/\-+*?()\[\]{}|^$]"
    r"|\[\^?(?:[^\[\]\\]|\\[dDwWsSnrt.\\/\-\[\]^])++\]"
    r"|\((?:\?:)?|\)|\||[.^$]|(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)*+"
)
# Inside these a pattern may earn a warning about sets to come; nothing a user could act on.
_WARNS = re.compile(r"\[\[|--|&&|~~|\|\|")
_warnings_lock = threading.Lock()


class BadPattern(ValueError):
    """A pattern that does not compile, and why."""


_stopped: list[None] = []  # appending needs no lock


def stopped_count() -> int:
    """How many searches were stopped at their time limit in this process."""
    return len(_stopped)


class TimedPattern:
    """A pattern that stops searching when its time is over."""

    __slots__ = ("_search", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._search: Any = None

    def build(self) -> None:
        """Compile for the matcher now, so that no run has to, or raise BadPattern."""
        if self._search is None:
            self._search = _quietly(self.text, _compile_for_matcher).search

    def found_in(self, text: str, budget: PatternBudget) -> bool:
        """Tell whether the pattern is found, within the block's time for patterns."""
        self.build()
        limit = budget.limit()
        started = time.perf_counter()
        try:
            return self._search(text, timeout=limit) is not None
        except TimeoutError:
            _stopped.append(None)
            raise CannotCheck(
                f"Pattern {shorten(self.text)} was stopped after {limit * 1000:.0f} ms; "
                "it backtracks too much. Make its repetitions unambiguous."
            ) from None
        finally:
            budget.spend(time.perf_counter() - started)


@lru_cache(maxsize=2048)
def compile_pattern(pattern: str) -> TimedPattern:
    """Check a pattern by the rules of `re` and make it ready for the matcher, or raise BadPattern."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadPattern(f"is longer than {MAX_PATTERN_LENGTH:,} characters")
    _quietly(pattern, _compile_for_re)
    timed = TimedPattern(pattern)
    if _PLAIN.fullmatch(pattern) is None:
        timed.build()  # it may use what the matcher does not know
    return timed


def _quietly(pattern: str, compile_: Callable[[str], Any]) -> Any:
    """Compile without the warning about sets to come, which nobody could act on."""
    if _WARNS.search(pattern) is None:
        return compile_(pattern)
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile_(pattern)


def _compile_for_re(pattern: str) -> Any:
    try:
        return re.compile(pattern)
    except re.error as fault:
        raise BadPattern(f"does not compile: {fault}") from None
    except (RecursionError, OverflowError, MemoryError) as fault:
        raise BadPattern(f"is too complicated to compile ({type(fault).__name__})") from None


def _compile_for_matcher(pattern: str) -> Any:
    import regex  # 40 ms, so only when a pattern is used

    try:
        return regex.compile(spell_for_matcher(pattern), regex.V0)
    except regex.error as fault:
        raise BadPattern(f"cannot be searched with a time limit: {fault}") from None
    except (RecursionError, OverflowError, MemoryError) as fault:
        raise BadPattern(f"is too complicated to compile ({type(fault).__name__})") from None


def spell_for_matcher(pattern: str) -> str:
    """Spell a pattern so that the matcher reads it as `re` does and never prepares for longer than it may search."""
    if "{" not in pattern and pattern.count("[") < 2 and len(pattern) <= _LITERAL_RUN:
        return pattern
    verbose = _VERBOSE.search(pattern) is not None
    out: list[str] = []
    run = at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        kind = token.lastgroup if token else None
        text = token[0] if token else pattern[at]
        if kind is None and verbose and text == "#":
            text = pattern[at:].partition("\n")[0]
        elif text == "[":
            text = pattern[at : _end_of_set(pattern, at)]
        at += len(text)
        if kind == "quantifier":
            run = 0
        else:
            # The matcher prepares for a long literal in cubic time, deaf to its time limit.
            if run >= _LITERAL_RUN:
                out.append(_ALWAYS)
                run = 0
            run += 1
        if kind is None and text[0] == "[":
            text = _spell_set(text)
        out.append("\\{" if text == "{" else text)
    return "".join(out)


def _end_of_set(pattern: str, start: int) -> int:
    at = start + 1
    if pattern.startswith("^", at):
        at += 1
    if pattern.startswith("]", at):  # first in a set it is literal
        at += 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _spell_set(text: str) -> str:
    inner = re.sub(r"(\\.)|\[", lambda match: match[1] or "\\[", text[1:], flags=re.DOTALL)
    return "[" + inner


def shorten(text: str, limit: int = 60) -> str:
    """Quote a text for a sentence: one line, printable, and cut when long."""
    shown = text[:limit]
    # As it was written where that can be read: a pattern's backslashes are not doubled.
    quoted = f"'{shown}'" if shown.isprintable() and "'" not in shown else repr(shown)
    return quoted if len(text) <= limit else f"{quoted}… ({len(text):,} characters)"
