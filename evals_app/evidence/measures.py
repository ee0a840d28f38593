"""The test of a number: score, cost, latency or tokens, by its rank among the runs before.

A rank has no heavy tail: a run that takes ten times as long is "the slowest of the last two hundred", once.
"""

from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, median
from struct import pack, unpack
from typing import Any

from evals_app.evidence.model import Baseline
from evals_app.evidence.passes import STEPS, failure_rate, worse_gains
from evals_app.evidence.series import WINDOW, Series

SHIFTS = (0.75, 1.5)  # how far, in standard deviations, the alternatives for worse lie
BETTER_SHIFT = 1.0
ALIKE_BY_CHANCE = 0.1
MOST_ALIKE = 0.8
NORMAL = NormalDist()


class Measure(Series):
    """A number whose rise is bad: cost, latency, tokens."""

    worse_legs = len(SHIFTS)
    reference = 100
    longest = 100
    # A rank wins at most a few nats, so that chance alone gets less far than with failures.
    bar_offset = -1.25
    sign = 1.0

    def __init__(self, smallest_change: float) -> None:
        super().__init__()
        self.smallest_change = smallest_change
        self.values: list[float] = []
        self.ranked: list[float] = []

    def badness(self, value: float) -> float:
        """The normal score of the value's rank; equal values share theirs."""
        below = bisect_left(self.ranked, value) + bisect_right(self.ranked, value)
        return self.sign * NORMAL.inv_cdf((below * 0.5 + 0.5) / (len(self.ranked) + 1.0))

    def gains(self, value: float) -> list[float]:
        badness = self.badness(value)
        gains = [shift * badness - 0.5 * shift * shift for shift in SHIFTS]
        gains.append(-BETTER_SHIFT * badness - 0.5 * BETTER_SHIFT * BETTER_SHIFT)
        return gains

    def remember(self, value: float) -> None:
        self.values.append(value)
        insort(self.ranked, value)
        if len(self.values) > self.reference + self.longest:
            del self.ranked[bisect_left(self.ranked, self.values.pop(0))]

    def memory(self) -> list[float]:
        return self.values

    def replace_memory(self, values: list[float]) -> None:
        self.values = values[-(self.reference + self.longest) :]
        self.ranked = sorted(self.values)

    def matters(self, before: list[float], after: list[float], direction: int) -> bool:
        typical = median(before)
        return (median(after) - typical) * direction > self.smallest_change * abs(typical)

    def return_gain(self, badness: float, level: float) -> float:
        level = max(level, 0.5)
        return 0.5 * level * level - level * badness

    def baseline(self) -> Baseline | None:
        return normal_of(self.values[-WINDOW:])

    def to_state(self) -> dict[str, Any]:
        return {**super().to_state(), "values": packed(self.values)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.replace_memory(unpacked(state["values"]))


class Latency(Measure):
    """A number whose rise is bad and which comes in phases: neighbouring runs count less the more alike they are.

    How alike is read from the differences between neighbours, which a lasting change leaves as they were.
    """

    def __init__(self, smallest_change: float) -> None:
        super().__init__(smallest_change)
        self.last = 0.0
        self.roughness = 1.0  # half the mean squared difference of neighbours: 1 when they are independent

    def gains(self, value: float) -> list[float]:
        badness = self.badness(value)
        step = 1.0 / min(self.count, WINDOW)
        self.roughness += step * (0.5 * (badness - self.last) ** 2 - self.roughness)
        self.last = badness
        alike = min(max(1.0 - self.roughness - ALIKE_BY_CHANCE, 0.0), MOST_ALIKE)
        share = (1.0 - alike) / (1.0 + alike)
        return [share * gain for gain in super().gains(value)]

    def to_state(self) -> dict[str, Any]:
        return {**super().to_state(), "last": self.last, "roughness": self.roughness}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.last, self.roughness = state["last"], state["roughness"]


class Score(Measure):
    """A number from 0 to 1 whose fall is bad: also bets on the points lost, which show more than ranks when most runs tie."""

    worse_legs = len(SHIFTS) + len(STEPS)
    sign = -1.0

    def gains(self, value: float) -> list[float]:
        *by_rank, better = super().gains(value)
        good = min(max(value, 0.0), 1.0)
        rates = [self._lost(self.pending(leg)) for leg in self.legs[len(SHIFTS) : self.worse_legs]]
        return [*by_rank, *worse_gains(good, rates), better]

    def _lost(self, pending: int) -> float:
        """The share of points lost, where a failure rate is asked for."""
        start = len(self.values) - pending
        lost = max(start - sum(self.values[:start]), 0.0)
        lost_since = max(pending - sum(self.values[start:]), 0.0)
        return failure_rate(lost, start, lost_since, pending)

    def matters(self, before: list[float], after: list[float], direction: int) -> bool:
        fall = sum(before) / len(before) - sum(after) / len(after)
        return fall * direction > self.smallest_change


def packed(values: list[float]) -> str:
    """Numbers as one short text: databases and JSON take it several times faster than a list of two hundred."""
    return b64encode(pack(f"<{len(values)}d", *values)).decode()


def unpacked(text: str) -> list[float]:
    """The packed numbers, to the last bit."""
    data = b64decode(text)
    return list(unpack(f"<{len(data) // 8}d", data))


def normal_of(values: Sequence[float]) -> Baseline | None:
    """What is normal according to these values; None without any."""
    if not values:
        return None
    count, ordered = len(values), sorted(values)
    mean = sum(values) / count
    spread = sqrt(sum((value - mean) ** 2 for value in values) / (count - 1)) if count > 1 else 0.0
    edge = (count - 1) * 0.05
    return Baseline(count, mean, spread, _between(ordered, edge), _between(ordered, count - 1 - edge))


def _between(ordered: list[float], position: float) -> float:
    """The value at a fractional position of a sorted list."""
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
