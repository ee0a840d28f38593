"""How tests wait: until something is so, or until they believe that it will not happen."""

import time
from collections.abc import Callable

# A test distinguishes "at once" from "never"; how long it takes on a quiet machine is for benchmarks/ to say.
PROMPTLY = 5.0


def wait_until(condition: Callable[[], object], what: str = "the condition", seconds: float = 30.0) -> float:
    """Ask again and again until it is so; returns how many seconds that took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() < begun + seconds, f"{what} did not come true within {seconds:g} s"
        time.sleep(0.01)
    return time.monotonic() - begun


def stays_the_same(read: Callable[[], object], seconds: float) -> bool:
    """Whether what is read does not change for so long."""
    before = read()
    time.sleep(seconds)
    return read() == before


def wait_until_blocked() -> None:
    """Until another connection waits for a lock. SQLite cannot say; there it is given a moment to come so far."""
    from django.db import connection

    if connection.vendor == "sqlite":
        time.sleep(0.3)
        return
    with connection.cursor() as cursor:
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        wait_until(lambda: cursor.execute(waiting).fetchone(), "the wait for a lock")
