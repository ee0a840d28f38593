"""Many runs as few points: neighbours put together, so that ten thousand draw as fast as a hundred."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from evals_app.charts.scale import finite
from workflows_app.display import formats


@dataclass(frozen=True)
class TrendPoint:
    """One run in a trend: its value, and what a reader wants to know about it."""

    value: float | None
    verdict: str | bool | None = None
    label: str = ""  # "#412"
    href: str | None = None
    at: datetime | None = None
    version: str = ""  # "v7"


@dataclass(frozen=True)
class Bin:
    """Neighbouring runs drawn as one point; usually just one run."""

    points: Sequence[TrendPoint]
    first: int  # index of the first run

    @cached_property
    def known(self) -> list[float]:
        """The values there are."""
        return [v for p in self.points if (v := finite(p.value)) is not None]

    @cached_property
    def mean(self) -> float | None:
        """The mean of the values there are."""
        return sum(self.known) / len(self.known) if self.known else None

    @property
    def middle(self) -> float:
        """The place among all runs, where one run is one wide."""
        return self.first + len(self.points) / 2

    @cached_property
    def verdicts(self) -> Counter[str]:
        """How many runs have each verdict."""
        return Counter(formats.verdict_word(p.verdict) for p in self.points)

    @cached_property
    def verdict(self) -> str:
        """The verdict of most runs; a tie goes to the worse."""
        return max(("error", "failed", "passed", "none"), key=self.verdicts.__getitem__)

    @property
    def bad(self) -> int:
        """How many runs did not pass."""
        return self.verdicts["failed"] + self.verdicts["error"]

    @property
    def href(self) -> str | None:
        """The run worth opening: the first that did not pass, otherwise the last."""
        if not self.bad:
            return self.points[-1].href
        return next(p for p in self.points if formats.verdict_word(p.verdict) in ("failed", "error")).href

    def describe(self, metric: str) -> str:
        """The details, for hovering and for screen readers."""
        first, last = self.points[0], self.points[-1]
        if len(self.points) == 1:
            word = formats.VERDICTS.get(self.verdict, (self.verdict,))[0].lower()
            when = f"{first.at:%d %b %Y %H:%M}" if first.at else ""
            parts = [first.label, formats.metric(finite(first.value), metric), word, first.version, when]
            return " · ".join(part for part in parts if part)
        numbers = (self.mean, min(self.known, default=None), max(self.known, default=None))
        mean, low, high = (formats.metric(v, metric) for v in numbers)
        parts = [
            f"{first.label} to {last.label}",
            mean if low == high else f"mean {mean} · {low} to {high}",
            f"{self.bad} of {len(self.points)} not passed" if self.bad else f"{len(self.points)} runs",
        ]
        return " · ".join(parts)


def bins(points: Sequence[TrendPoint], most: int) -> list[Bin]:
    """At most so many bins of equal size, in order."""
    size = max(1, -(-len(points) // max(most, 1)))
    return [Bin(points[start : start + size], start) for start in range(0, len(points), size)]
