"""Assertions about what a block cost and how long it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evals_app.assertions.base import Assertion, Verdict, option
from evals_app.assertions.context import CheckedOutput
from evals_app.assertions.limits import CannotCheck
from evals_app.assertions.options import Number, describe


@dataclass(frozen=True)
class _AtMost(Assertion):
    """Compares a measurement with the largest that passes."""

    recorded_as: ClassVar[str] = ""
    unit: ClassVar[str] = "{}"
    tolerance: ClassVar[float] = 0.0

    threshold: float = field(metadata=option(Number(minimum=0), "The largest that passes."))

    def passing(self) -> tuple[float | None, float | None]:
        return None, self.threshold

    def check(self, output: CheckedOutput) -> Verdict:
        number = _finite(self.measures, getattr(output.context, self.recorded_as))
        passed = number <= self.threshold + self.tolerance
        shown, limit = _six_digits(number), _six_digits(self.threshold)
        if shown == limit and number != self.threshold:  # they must not look the same
            shown, limit = repr(number), repr(float(self.threshold))
        word = "within" if passed else "above"
        sides = f"{self.unit.format(shown)}, {word} {self.unit.format(limit)}"
        return Verdict(passed, f"{self.measures.capitalize()} is {sides}.", None, number)


@dataclass(frozen=True)
class Cost(_AtMost):
    """The block cost at most the threshold, in US dollars; a difference of 1e-9 is float noise."""

    type = "cost"
    example: ClassVar = {"threshold": 0.05}
    measures = "cost"
    recorded_as = "cost_usd"
    unit = "${}"
    tolerance = 1e-9

    threshold: float = field(metadata=option(Number(minimum=0), "The most it may cost, in US dollars."))


@dataclass(frozen=True)
class Latency(_AtMost):
    """The block took at most the threshold, in milliseconds."""

    type = "latency"
    example: ClassVar = {"threshold": 2000}
    measures = "latency"
    recorded_as = "latency_ms"
    unit = "{} ms"

    threshold: float = field(metadata=option(Number(minimum=0), "The longest it may take, in milliseconds."))


def _six_digits(number: float) -> str:
    """Write a number; a small one, as most costs are, without an exponent."""
    if number == 0 or abs(number) >= 0.001:
        return f"{number:,.6g}"
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _finite(what: str, value: Any) -> float:
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
