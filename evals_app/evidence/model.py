"""What goes into the evidence and what comes out: plain, frozen values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Sensitivity = Literal["low", "normal", "high"]
RegressionKind = Literal["assertion_regression", "quality_drop", "cost_spike", "latency_spike"]
ChangeKind = Literal["opened", "strengthened", "weakened", "continued", "closed"]
State = Literal["better", "worse", "no evidence of change", "too few runs"]

METRICS = ("score", "cost", "latency", "tokens")
REGRESSION_KINDS: tuple[RegressionKind, ...] = (
    "assertion_regression",
    "quality_drop",
    "cost_spike",
    "latency_spike",
)


@dataclass(frozen=True)
class Settings:
    """The `evidence:` section of a workflow; the defaults need no thought.

    `ignore` names metrics (`latency`), `assertions` for all of them, or one assertion's key.
    """

    sensitivity: Sensitivity = "normal"
    min_runs: int = 20
    ignore: frozenset[str] = frozenset()

    @classmethod
    def from_mapping(cls, section: Mapping[str, Any] | None) -> "Settings":
        """Read an already validated `evidence:` section."""
        section = section or {}
        return cls(
            sensitivity=section.get("sensitivity", "normal"),
            min_runs=section.get("min_runs", 20),
            ignore=frozenset(section.get("ignore") or ()),
        )


@dataclass(frozen=True)
class Observed:
    """What one completed production run says about one block."""

    number: int
    score: float | None = None
    passed: bool | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    tokens: int | None = None
    assertions: Mapping[str, bool] = field(default_factory=dict)
    workflow_version: int = 0
    soul_version: str | None = None


@dataclass(frozen=True)
class Level:
    """How many runs, and their mean (of an assertion: the share that passed)."""

    count: int
    mean: float


@dataclass(frozen=True)
class Suspect:
    """A change of version close to where a regression seems to begin."""

    number: int
    workflow_version: int
    soul_version: str | None
    previous_workflow_version: int
    previous_soul_version: str | None


@dataclass(frozen=True)
class Change:
    """What became of a regression of one kind: it opened, grew, shrank, closed, or went on with another level.

    `assertions` are all that make up an `assertion_regression` now, the most evident first; `assertion` is that one.
    """

    kind: ChangeKind
    regression_kind: RegressionKind
    metric: str
    assertion: str | None
    assertions: tuple[str, ...]
    since_number: int
    before: Level
    after: Level
    evidence: float
    suspected: Suspect | None

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON-able values."""
        return {**asdict(self), "assertions": list(self.assertions)}


@dataclass(frozen=True)
class Verdict:
    """One of the four states, with how many runs it rests on and how many it needs."""

    state: State
    count: int
    needed: int

    def __str__(self) -> str:
        if self.state == "too few runs":
            return f"too few runs ({self.count} of {self.needed})"
        return self.state


@dataclass(frozen=True)
class Baseline:
    """What is normal: count, mean and spread; nine runs in ten lie from `low` to `high`.

    For an assertion the mean is its pass rate, and `low` to `high` is that rate's 95 % interval.
    """

    count: int
    mean: float
    spread: float
    low: float
    high: float
