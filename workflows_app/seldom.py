"""Faults that would otherwise fill the log: one line a minute, with the number of those left out."""

from __future__ import annotations

import threading
import time


class Seldom:
    """Says when a repeated fault may be told again."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds
        self._next = 0.0
        self._left_out = 0
        self._lock = threading.Lock()

    def turn(self) -> int | None:
        """How many were left out since the last time, or None if this one is left out too."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                self._left_out += 1
                return None
            self._next = now + self.seconds
            left_out, self._left_out = self._left_out, 0
            return left_out
