"""One sequential test: a CUSUM of betting gains per alternative, against what came before its own start.

Every run bets a little on "this became worse". The odds are fair as long as nothing changed, so the winnings
(`Leg.winnings`, in nats) stay small; they begin again from nothing whenever they are used up, and the run at which they
last began is the estimated start of the change. What is normal is learnt from the runs before that start and, with
less weight, from those since: a reference of a hundred runs is itself uncertain, and this pays for it. (Full weight
would make the odds exactly fair, but a change that builds up slowly would then teach the test to accept it.)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from evals_app.evidence.model import Baseline, Level

WINDOW = 100  # what is normal, as shown: this many runs
ADOPT_RUNS = 50  # an improvement that lasted so long is the new normal
# Nats for "back to normal": a wrong answer only reopens, so it may be lower than the alarm's.
RETURN_BAR = 6.5
RETURN_RUNS = 5
RECENT = 100


@dataclass(slots=True)
class Leg:
    """The winnings of one alternative: how much, since which observation, over how many runs, summing to what."""

    winnings: float = 0.0
    since: int = 0
    count: int = 0
    total: float = 0.0

    def add(self, number: int, value: float, gain: float) -> None:
        """Bet once more, beginning again when everything is lost."""
        winnings = self.winnings + gain
        if winnings <= 0.0:
            self.winnings, self.since, self.count, self.total = 0.0, 0, 0, 0.0
            return
        if self.count == 0:
            self.since = number
        self.winnings = winnings
        self.count += 1
        self.total += value

    def to_state(self) -> list[float | int]:
        return [self.winnings, self.since, self.count, self.total]


@dataclass(slots=True)
class Opened:
    """A change for the worse in force: what it was, what it is, and how far it is back."""

    since: int
    found_at: int
    evidence: float
    before: Level
    after_count: int
    after_total: float
    level_count: int
    level_total: float
    back: Leg = field(default_factory=Leg)
    recent: list[float] = field(default_factory=list)

    @property
    def after(self) -> Level:
        return Level(self.after_count, self.after_total / self.after_count if self.after_count else 0.0)

    @property
    def while_worse(self) -> Level:
        """What it was until the runs that show it is back."""
        back = self.recent[-self.back.count :] if self.back.count else []
        count = self.after_count - len(back)
        return Level(count, (self.after_total - sum(back)) / count) if count > 0 else self.after

    def to_state(self) -> dict[str, Any]:
        return {
            "since": self.since,
            "found_at": self.found_at,
            "evidence": self.evidence,
            "before": [self.before.count, self.before.mean],
            "after": [self.after_count, self.after_total],
            "level": [self.level_count, self.level_total],
            "back": self.back.to_state(),
            "recent": list(self.recent),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Opened":
        return cls(
            since=state["since"],
            found_at=state["found_at"],
            evidence=state["evidence"],
            before=Level(*state["before"]),
            after_count=state["after"][0],
            after_total=state["after"][1],
            level_count=state["level"][0],
            level_total=state["level"][1],
            back=Leg(*state["back"]),
            recent=list(state["recent"]),
        )


class Series(ABC):
    """The test of one measured thing; subclasses say what a run gains and what is kept of it."""

    worse_legs: int
    reference: int  # how many runs before a start to bet against, where there are as many
    longest: int  # a start further back than this is counted as this far back
    bar_offset: float

    def __init__(self) -> None:
        self.count = 0
        self.seen = 0
        self.bar = 0.0
        self.legs = [Leg() for _ in range(self.worse_legs + 1)]
        self.opened: Opened | None = None

    @abstractmethod
    def gains(self, value: float) -> list[float]:
        """What each leg wins by this value: those for worse, then the one for better."""

    @abstractmethod
    def remember(self, value: float) -> None:
        """Keep the value as part of what is normal."""

    @abstractmethod
    def memory(self) -> list[float]:
        """The values kept, oldest first."""

    @abstractmethod
    def replace_memory(self, values: list[float]) -> None:
        """Keep these values instead."""

    @abstractmethod
    def matters(self, before: list[float], after: list[float], direction: int) -> bool:
        """Whether the difference is large enough to report; direction 1 is worse, -1 better."""

    @abstractmethod
    def badness(self, value: float) -> float:
        """How bad the value is on the scale that `return_gain` reads, against the memory."""

    @abstractmethod
    def return_gain(self, badness: float, level: float) -> float:
        """What "back to normal" wins over "still at this level of badness"."""

    @abstractmethod
    def baseline(self) -> Baseline | None:
        """Normal, over the last hundred runs, or the hundred before an open change; None before the first."""

    def pending(self, leg: Leg) -> int:
        """How many of the values kept came after the leg's start; while a change is open none are."""
        return 0 if self.opened is not None else min(leg.count, self.longest)

    def observe(self, number: int, value: float, bar: float, min_runs: int) -> None:
        """Add one more run, in constant time."""
        self.count += 1
        self.seen = number
        self.bar = bar = bar + self.bar_offset
        if self.opened is not None:
            self._observe_open(self.opened, number, value)
            return
        if self.count > max(min_runs, 2):
            for leg, gain in zip(self.legs, self.gains(value), strict=True):
                leg.add(number, value, gain)
        self.remember(value)
        self._decide(bar)

    def record(self, number: int, value: float) -> None:
        """Add one more run of what can raise no alarm: normal is the last runs, whatever they were."""
        self.count += 1
        self.seen = number
        if self.opened is not None:
            self.replace_memory(self.memory() + self.opened.recent)
            self.opened = None
        self.legs = [Leg() for _ in self.legs]
        self.remember(value)

    def _decide(self, bar: float) -> None:
        for leg in self.legs:
            if leg.winnings < bar:
                continue
            is_worse = leg is not self.legs[-1]
            before, after = self._split(leg)
            if not self.matters(before[-WINDOW:], after, 1 if is_worse else -1):
                leg.winnings = bar * 0.99  # certain, but too small to mention: stay ready without piling up
            elif is_worse:
                self._open(max(self.legs[:-1], key=lambda each: each.winnings))
                return
            elif leg.count >= ADOPT_RUNS:
                self.replace_memory(after)
                self.legs = [Leg() for _ in self.legs]
                return

    def _split(self, leg: Leg) -> tuple[list[float], list[float]]:
        """The values from before the leg's start, and those since."""
        values = self.memory()
        start = len(values) - self.pending(leg)
        return values[:start], values[start:]

    def _open(self, leg: Leg) -> None:
        normal, after = self._split(leg)
        before = normal[-WINDOW:]
        self.replace_memory(normal)
        self.opened = Opened(
            since=leg.since,
            found_at=self.seen,
            evidence=leg.winnings,
            before=Level(len(before), sum(before) / len(before)),
            after_count=leg.count,
            after_total=leg.total,
            level_count=len(after),
            level_total=sum(map(self.badness, after)),
            recent=after[-RECENT:],
        )

    def _observe_open(self, opened: Opened, number: int, value: float) -> None:
        for leg, gain in zip(self.legs[:-1], self.gains(value), strict=False):
            leg.add(number, value, gain)
            opened.evidence = max(opened.evidence, leg.winnings)
        opened.after_count += 1
        opened.after_total += value
        opened.recent = [*opened.recent, value][-RECENT:]
        badness, back = self.badness(value), opened.back
        gain = self.return_gain(badness, opened.level_total / opened.level_count)
        if back.winnings + gain <= 0.0:
            opened.level_count += back.count + 1
            opened.level_total += back.total + badness
        back.add(number, badness, gain)
        if back.winnings >= RETURN_BAR and back.count >= RETURN_RUNS:
            # The runs since it came back belong to what is normal again, those in between do not.
            self.replace_memory(self.memory() + opened.recent[-back.count :])
            self.opened = None
            self.legs = [Leg() for _ in self.legs]

    @property
    def is_better(self) -> bool:
        """Whether the evidence that it improved has passed the bar."""
        return self.opened is None and self.legs[-1].winnings >= self.bar > 0.0

    def to_state(self) -> dict[str, Any]:
        """Everything, as JSON-able values of bounded size."""
        state: dict[str, Any] = {
            "count": self.count,
            "seen": self.seen,
            "bar": self.bar,
            "legs": [leg.to_state() for leg in self.legs],
        }
        if self.opened is not None:
            state["open"] = self.opened.to_state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a saved state."""
        self.count, self.seen, self.bar = state["count"], state["seen"], state["bar"]
        self.legs = [Leg(*leg) for leg, _ in zip(state["legs"], self.legs, strict=True)]
        self.opened = Opened.from_state(state["open"]) if "open" in state else None
