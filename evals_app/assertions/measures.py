"""Assertions about what a block cost and how long it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .base import Assertion, Verdict, option
from .limits import CannotCheck
from .options import Number, describe
from .subject import Subject

_FLOAT_NOISE = 1e-9


@dataclass(frozen=True)
class Cost(Assertion):
    """The block cost at most the threshold, in US dollars; a difference of 1e-9 is float noise."""

    type = "cost"
    example: ClassVar = {"threshold": 0.05}
    measures = "cost"

    threshold: float = field(metadata=option(Number(minimum=0), "The most it may cost, in US dollars."))

    def passing(self) -> tuple[float | None, float | None]:
        return None, self.threshold

    def check(self, subject: Subject) -> Verdict:
        cost = _measured("cost", subject.context.cost_usd)
        passed = cost <= self.threshold + _FLOAT_NOISE
        shown, limit = _told_apart(cost, self.threshold)
        return Verdict(passed, f"Cost is ${shown}, {'within' if passed else 'above'} ${limit}.", None, cost)


@dataclass(frozen=True)
class Latency(Assertion):
    """The block took at most the threshold, in milliseconds."""

    type = "latency"
    example: ClassVar = {"threshold": 2000}
    measures = "latency"

    threshold: float = field(metadata=option(Number(minimum=0), "The longest it may take, in milliseconds."))

    def passing(self) -> tuple[float | None, float | None]:
        return None, self.threshold

    def check(self, subject: Subject) -> Verdict:
        latency = _measured("latency", subject.context.latency_ms)
        passed = latency <= self.threshold
        shown, limit = _told_apart(latency, self.threshold)
        return Verdict(
            passed, f"Latency is {shown} ms, {'within' if passed else 'above'} {limit} ms.", None, latency
        )


def _told_apart(number: float, limit: float) -> tuple[str, str]:
    """Spell both with six digits, or with all where six would make them look the same."""
    shown, shown_limit = _spelt(number), _spelt(limit)
    if shown == shown_limit and number != limit:
        return repr(float(number)), repr(float(limit))
    return shown, shown_limit


def _spelt(number: float) -> str:
    """Six digits; a small number, as most costs are, without an exponent."""
    return (
        f"{number:,.6g}" if number == 0 or abs(number) >= 0.001 else f"{number:.9f}".rstrip("0").rstrip(".")
    )


def _measured(what: str, value: Any) -> float:
    """Return a measurement; one that was not made is not taken for 0."""
    if value is None:
        raise CannotCheck(f"The {what} was not recorded, so there is nothing to compare.")
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise CannotCheck(f"The recorded {what} is {describe(value)}, not a finite number.")
    return number
