"""Patterns as `re` understands them, searched by a matcher that can be stopped."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evals_app.assertions.base import BadOption
from evals_app.assertions.limits import (
    MAX_PATTERN_LENGTH,
    MAX_REPEATED_LENGTH,
    CannotCheck,
    PatternBudget,
)

# The parts of a pattern that belong together; everything else is a character.
_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[NpP]\{[^}]*\}|[0-9]{1,3}|.))"
    r"|(?P<comment>\(\?#[^)]*\))"
    r"|(?P<group>\(\?(?:P<\w+>|P=\w+\)|\(\w+\)|<?[=!]|[a-zA-Z-]*[:)]|>))"
    r"|(?P<quantifier>(?:\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\}|[*+?])[?+]?)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])",  # first in a set, a closing bracket is literal
    re.DOTALL,
)
_LEAST_REPEATS = re.compile(r"\{([0-9]+)")
# An even number of backslashes before it leaves it what it is.
_PROPERTY = re.compile(r"(?<!\\)((?:\\\\)*)\\[pP]\{\w+(?:=\w+)?\}")
_LITERAL_RUN = 100
_ALWAYS = "(?!(?!))"
_VERBOSE = re.compile(r"\(\?[a-z]*x")
_warnings_lock = threading.Lock()


_stopped: list[None] = []  # appending needs no lock


def stopped_count() -> int:
    """How many searches were stopped at their time limit in this process."""
    return len(_stopped)


@dataclass(frozen=True, slots=True)
class TimedPattern:
    """A pattern that stops searching when its time is over."""

    text: str
    search: Callable[..., Any]

    def found_in(self, text: str, budget: PatternBudget) -> bool:
        """Say whether the pattern is found, within the block's time for patterns."""
        limit = budget.limit()
        started = time.perf_counter()
        try:
            return self.search(text, timeout=limit) is not None
        except TimeoutError:
            _stopped.append(None)
            raise CannotCheck(
                f"Pattern {quote(self.text)} was stopped after {limit * 1000:.0f} ms; "
                "it backtracks too much. Make its repetitions unambiguous."
            ) from None
        finally:
            budget.spend(time.perf_counter() - started)


@lru_cache(maxsize=2048)
def compile_pattern(pattern: str, *, unicode_properties: bool = False) -> TimedPattern:
    """Check a pattern by the rules of `re` and compile it for the matcher, or raise BadOption.

    With `unicode_properties` it may also say `\\p{Letter}`, as JSON Schema allows.
    """
    import regex  # only when there is a pattern

    quoted = quote(pattern)
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadOption(f"{quoted} is longer than {MAX_PATTERN_LENGTH:,} characters")
    try:
        with without_warnings():
            re.compile(_PROPERTY.sub(r"\1\\w", pattern) if unicode_properties else pattern)
            return TimedPattern(pattern, regex.compile(translate_for_matcher(pattern), regex.V0).search)
    except re.error as error:
        raise BadOption(f"{quoted} does not compile: {error}") from None
    except regex.error as error:
        raise BadOption(f"{quoted} cannot be searched with a time limit: {error}") from None
    except BadOption as error:
        raise BadOption(f"{quoted} {error.message}") from None
    except (RecursionError, OverflowError, MemoryError, ValueError) as error:
        raise BadOption(f"{quoted} is too complicated to compile ({type(error).__name__})") from None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore, one thread at a time, what a parser says may change one day: nothing a user could act on."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def translate_for_matcher(pattern: str) -> str:
    """Rewrite a pattern so that the matcher reads it as `re` does and never prepares for longer than it may search."""
    if "{" not in pattern and pattern.count("[") < 2 and len(pattern) <= _LITERAL_RUN:
        return pattern
    verbose = _VERBOSE.search(pattern) is not None
    out: list[str] = []
    run = at = 0
    written_out = _WrittenOut()
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        kind = token.lastgroup if token else None
        text = token[0] if token else pattern[at]
        if kind is None and verbose and text == "#":
            text = pattern[at:].partition("\n")[0]
        at += len(text)
        if not (verbose and kind is None and (text.isspace() or text[0] == "#")):
            written_out.add(kind, text)
        if kind == "quantifier":
            run = 0
        else:
            # The matcher prepares for a long literal in cubic time, whatever its time limit.
            if run >= _LITERAL_RUN:
                out.append(_ALWAYS)
                run = 0
            run += 1
        if kind == "set":
            text = "[" + re.sub(r"(\\.)|\[", lambda match: match[1] or "\\[", text[1:], flags=re.DOTALL)
        out.append("\\{" if text == "{" else text)
    return "".join(out)


class _WrittenOut:
    """How long a pattern is when each part stands there as often as it must repeat, as the matcher compiles it."""

    def __init__(self) -> None:
        self._groups = [0]
        self._last = 0

    def add(self, kind: str | None, text: str) -> None:
        """Count the next part, or raise BadOption when it becomes too long."""
        groups = self._groups
        if kind == "quantifier":
            least = _LEAST_REPEATS.match(text)
            size = self._last * max(1, int(least[1]) if least else 1)
            groups[-1] += size - self._last
        elif text[0] == "(" and (text[-1] != ")" or text.startswith("(?(")):
            groups.append(1)
            return
        else:
            size = groups.pop() if text == ")" and kind is None and len(groups) > 1 else 1
            groups[-1] += size
        self._last = size
        if groups[-1] > MAX_REPEATED_LENGTH:
            raise BadOption(
                f"repeats too much: written out it has more than {MAX_REPEATED_LENGTH:,} characters"
            )


def quote(text: str, limit: int = 60) -> str:
    """Quote a text for a sentence: one line, printable, and cut when long."""
    shown = text[:limit]
    # As it was written where that can be read: a pattern's backslashes are not doubled.
    quoted = f"'{shown}'" if shown.isprintable() and "'" not in shown else repr(shown)
    return quoted if len(text) <= limit else f"{quoted}… ({len(text):,} characters)"
