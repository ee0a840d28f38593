"""Errors that would otherwise fill the log: one line a minute, with the number of those left out."""

from __future__ import annotations

import threading
import time
from typing import Any


class LogThrottle:
    """Lets one message through a minute."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds
        self._next = 0.0
        self._left_out = 0
        self._lock = threading.Lock()

    def allow(self) -> int | None:
        """How many were left out since the last message, or None if this one is left out too."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                self._left_out += 1
                return None
            self._next = now + self.seconds
            left_out, self._left_out = self._left_out, 0
            return left_out

    def warning(self, log: Any, message: str, error: Exception) -> None:
        """Log a warning about an error, unless it is left out."""
        if (left_out := self.allow()) is not None:
            log.warning(message, error=f"{type(error).__name__}: {error}", not_logged=left_out)
