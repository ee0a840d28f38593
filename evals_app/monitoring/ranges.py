"""The stretches of time that trends and the dashboard look at."""

from __future__ import annotations

from datetime import timedelta

from workflows_app.engine.definition import Fault, InvalidDocument

RANGES: dict[str, timedelta | None] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "all": None,
}
MOST_RUNS = 100_000


class UnknownRange(InvalidDocument):
    """A range that does not exist; the message lists those that do."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("range", None, message)])


def length_of(text: str) -> timedelta | None:
    """How far back a named range goes; None for all of it."""
    try:
        return RANGES[text]
    except KeyError:
        raise UnknownRange(f"{text!r} is no range; use one of {', '.join(RANGES)}.") from None


def runs_in(text: str) -> int | None:
    """The count if a range is a number of runs, such as `200`; None if it is a stretch of time."""
    if not text.isascii() or not text.isdecimal():
        return None
    if len(text) > 9 or not 1 <= int(text) <= MOST_RUNS:
        raise UnknownRange(f"{text} runs is not possible; ask for 1 to {MOST_RUNS:,}.")
    return int(text)
