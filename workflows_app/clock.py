"""What time it is. The demo writes its past runs with a simulated clock; everyone else has the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone


class SimulatedClock:
    """A clock that moves only when `advance` is called."""

    def __init__(self, start: datetime) -> None:
        self.moment = start

    def advance(self, milliseconds: float) -> None:
        self.moment += timedelta(milliseconds=milliseconds)


_simulated: ContextVar[SimulatedClock | None] = ContextVar("simulated_clock", default=None)


def now() -> datetime:
    """The present moment, or the simulated one."""
    clock = _simulated.get()
    return clock.moment if clock else timezone.now()


def shared_now() -> datetime:
    """Like `now`, by the database's clock: for times that one process writes and another compares.

    Processes on several machines, or one whose clock is wrong, agree on nothing else.
    """
    clock = _simulated.get()
    return clock.moment if clock else database_now()


def database_now() -> datetime:
    """The present moment by the database's clock, never a simulated one."""
    if connection.vendor == "sqlite":  # its clock is that of the one machine it is on
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT STATEMENT_TIMESTAMP()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def simulated_clock() -> SimulatedClock | None:
    """The simulated clock, if one is in use."""
    return _simulated.get()


@contextmanager
def simulate(start: datetime) -> Iterator[SimulatedClock]:
    """Within this block, time begins at `start` and stands still until advanced."""
    clock = SimulatedClock(start)
    token = _simulated.set(clock)
    try:
        yield clock
    finally:
        _simulated.reset(token)
