"""What time it is. The demo tells its history with a clock of its own; everyone else has the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone


class StoryClock:
    """A clock that moves only when told to."""

    def __init__(self, start: datetime) -> None:
        self.moment = start

    def advance(self, milliseconds: float) -> None:
        self.moment += timedelta(milliseconds=milliseconds)


_story: ContextVar[StoryClock | None] = ContextVar("story_clock", default=None)


def now() -> datetime:
    """The present moment, of the story if one is being told."""
    story = _story.get()
    return story.moment if story else timezone.now()


def shared_now() -> datetime:
    """Like `now`, by the database's clock: for times that one process writes and another compares.

    Processes on several machines, or one whose clock is wrong, agree on nothing else.
    """
    story = _story.get()
    return story.moment if story else database_now()


def database_now() -> datetime:
    """The present moment by the database's clock, whatever story is being told."""
    if connection.vendor == "sqlite":  # its clock is that of the one machine it is on
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT STATEMENT_TIMESTAMP()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def current_story() -> StoryClock | None:
    """The story clock, if one is being told."""
    return _story.get()


@contextmanager
def telling(story: StoryClock) -> Iterator[StoryClock]:
    """Within this block, time is what the story says."""
    token = _story.set(story)
    try:
        yield story
    finally:
        _story.reset(token)
