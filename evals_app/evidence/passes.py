"""The test of an assertion: did it begin to fail more often?"""

from math import log, sqrt
from typing import Any

from evals_app.evidence.model import Baseline
from evals_app.evidence.series import WINDOW, Series

# A failure rate q may become q + step * (1 - q): for a block that hardly ever failed these are 25 and 50 %.
STEPS = (0.25, 0.5)
PASS_GAINS = tuple(log(1.0 - step) for step in STEPS)
EASING = 0.35  # the alternative for better: a third of the failures
EASING_GAIN = log(EASING)
PENDING_RUNS = 15.0  # the weight of a run since a start in what is normal: this over the runs before it
DOUBT = 0.8  # failures assumed on top of those seen: "never failed" is not "cannot fail"


def failure_rate(failed: float, count: int, failed_since: float, count_since: int) -> float:
    """The rate to bet against, from the runs before a start and, with less weight the more of those there are, since."""
    share = min(1.0, PENDING_RUNS / max(count, 1))
    return (failed + share * failed_since + DOUBT) / (count + share * count_since + DOUBT + 1.0)


def worse_gains(good: float, rates: list[float]) -> list[float]:
    """What each step wins by a run that was `good` (1 passed, 0 failed, or between), given the failure rates so far."""
    bad = 1.0 - good
    gains = [good * gain for gain in PASS_GAINS]
    if bad > 0.0:
        for index, step in enumerate(STEPS):
            rate = rates[index]
            gains[index] += bad * log(1.0 + step * (1.0 - rate) / rate)
    return gains


class Passes(Series):
    """Passed or failed, kept as a string of ones and zeros."""

    worse_legs = len(STEPS)
    reference = 300
    longest = 200
    bar_offset = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def gains(self, value: float) -> list[float]:
        rates = [self._failure_rate(self.pending(leg)) for leg in self.legs]
        gains = worse_gains(value, rates)
        easing = rates[-1]
        gains.append(log((1.0 - EASING * easing) / (1.0 - easing)) if value else EASING_GAIN)
        return gains

    def _failure_rate(self, pending: int) -> float:
        start = len(self.text) - pending
        first = max(0, start - self.reference)
        failed, failed_since = self.text.count("0", first, start), self.text.count("0", start)
        return failure_rate(failed, start - first, failed_since, pending)

    def remember(self, value: float) -> None:
        self.text = (self.text + ("1" if value else "0"))[-(self.reference + self.longest) :]

    def memory(self) -> list[float]:
        return [1.0 if mark == "1" else 0.0 for mark in self.text]

    def replace_memory(self, values: list[float]) -> None:
        self.text = "".join("1" if value else "0" for value in values)[-(self.reference + self.longest) :]

    def matters(self, before: list[float], after: list[float], direction: int) -> bool:
        return True

    def badness(self, value: float) -> float:
        return 1.0 - value

    def return_gain(self, badness: float, level: float) -> float:
        normal = self._failure_rate(0)
        level = min(max(level, normal + 0.02), 0.98)
        normal = min(normal, level - 0.01)
        return log(normal / level) if badness else log((1.0 - normal) / (1.0 - level))

    def baseline(self) -> Baseline | None:
        window = self.text[-WINDOW:]
        if not window:
            return None
        count = len(window)
        mean = window.count("1") / count
        # Wilson's interval: honest when everything passed, unlike mean plus or minus two errors.
        z2 = 1.96**2
        centre = (mean + z2 / (2 * count)) / (1 + z2 / count)
        half = sqrt(mean * (1 - mean) / count + z2 / (4 * count**2)) * 1.96 / (1 + z2 / count)
        return Baseline(
            count, mean, sqrt(mean * (1 - mean)), max(0.0, centre - half), min(1.0, centre + half)
        )

    def to_state(self) -> dict[str, Any]:
        return {**super().to_state(), "text": self.text}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.text = state["text"]
