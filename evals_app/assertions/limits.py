"""The limits in time and size that keep every check bounded."""

from __future__ import annotations

import threading
import time

#: One pattern may search this long.
PATTERN_SECONDS = 0.25
#: Once a block has spent this much on patterns, each further one gets the short limit.
BLOCK_PATTERN_SECONDS = 2.0
SHORT_PATTERN_SECONDS = 0.025
#: After this long no further assertion of a block, or of a request, is begun.
BLOCK_SECONDS = 5.0
#: One assertion may spend this long in a schema or a JSON path.
CHECK_SECONDS = 2.0
#: `contains-json` validates at most this many objects and arrays.
MAX_CANDIDATES = 1_000
#: Levels of brackets that JSON may have: fewer than the interpreter can recurse, however deep the caller is.
MAX_DEPTH = 400
#: Characters of a pattern or a path; longer ones take too long to compile.
MAX_PATTERN_LENGTH = 10_000
#: Characters of a pattern whose repeats are written out; each takes some 300 bytes once compiled.
MAX_REPEATED_LENGTH = 100_000
#: Machine words an edit distance may touch, about half a second.
MAX_DISTANCE_WORK = 200_000_000


class CannotCheck(Exception):
    """The check could not be made, and why; there is no verdict."""


class PatternBudget:
    """The time one block has for its assertions and for its patterns, shared by every thread that checks it."""

    __slots__ = ("_lock", "ends_at", "spent")

    def __init__(self) -> None:
        self.ends_at = time.perf_counter() + BLOCK_SECONDS
        self.spent = 0.0
        self._lock = threading.Lock()

    def limit(self) -> float:
        """Return how many seconds the next pattern may take."""
        return SHORT_PATTERN_SECONDS if self.spent >= BLOCK_PATTERN_SECONDS else PATTERN_SECONDS

    def spend(self, seconds: float) -> None:
        """Add the time a pattern took."""
        with self._lock:
            self.spent += seconds


class Deadline:
    """A time limit that long loops check."""

    __slots__ = ("_at", "_what")

    def __init__(self, what: str, seconds: float = CHECK_SECONDS) -> None:
        self._what = what
        self._at = time.perf_counter() + seconds

    def check(self) -> None:
        """Raise CannotCheck once the time is over."""
        if time.perf_counter() > self._at:
            raise CannotCheck(f"{self._what} took longer than {CHECK_SECONDS:g} s and was stopped.")
