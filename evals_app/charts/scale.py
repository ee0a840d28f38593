"""Axes: round steps, ranges that show a small change without lying, labels with units."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from evals_app.block_metrics import AMOUNTS
from workflows_app.display import formats

# Beyond these an axis has no ticks that a float can tell apart.
SMALLEST, LARGEST = 1e-11, 1e12
FROM_ZERO = frozenset({*AMOUNTS, "runs"})


def finite(value: float | None) -> float | None:
    """The number, or None where it is missing, infinite or not a number."""
    return None if value is None or not isfinite(value) else float(value)


@dataclass(frozen=True)
class Axis:
    """A range of values and its ticks."""

    low: float
    high: float
    step: float

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Round values from the low end to the high end."""
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        return [index * self.step for index in range(first, last + 1)]


def round_step(span: float, parts: int = 4) -> float:
    """The round number nearest above a fraction of the span: 1, 2, 2.5 or 5 times a power of ten."""
    rough = max(span / parts, 1e-12)
    power = 10.0 ** floor(log10(rough))
    return next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))


def value_axis(values: Iterable[float], metric: str) -> Axis:
    """Amounts start at zero; scores end at one and start as low as needed, never zoomed beyond a fifth."""
    known = [min(max(value, -LARGEST), LARGEST) for value in values]
    if metric in FROM_ZERO:
        top = max(max(known, default=0.0) or 1.0, SMALLEST)
        step = round_step(top)
        return Axis(0.0, step * ceil(top / step - 1e-9), step)
    low, high = min(known, default=0.0), max([1.0, *known])
    low = min(low, high - 0.2)
    step = round_step(high - low)
    bottom = step * floor(low / step + 1e-9)
    return Axis(max(bottom, 0.0) if low >= 0 else bottom, step * ceil(high / step - 1e-9), step)


def tick_label(value: float, step: float, metric: str) -> str:
    """A tick with its unit, with as many digits as the step needs."""
    if metric == "cost":
        digits = min(max(_digits(step), 2), 10)
        return f"${value:,.{digits}f}" if value else "$0"
    if metric == "tokens" and step < 1:
        return f"{value:g}"
    if metric in formats.METRICS and metric != "score":
        return formats.metric(value, metric)
    return f"{value:.{min(max(_digits(step), 1), 6)}f}"


def _digits(step: float) -> int:
    """Decimals that tell one multiple of the step from the next."""
    for digits in range(12):
        if abs(step * 10**digits - round(step * 10**digits)) < 1e-6:
            return digits
    return 12
