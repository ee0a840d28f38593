"""What goes into the evidence and what comes out: plain, frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

RegressionKind = Literal["assertion_regression", "quality_drop", "cost_spike", "latency_spike"]
ChangeKind = Literal["opened", "strengthened", "weakened", "continued", "closed"]
State = Literal["better", "worse", "no evidence of change", "too few runs"]

REGRESSION_KINDS: tuple[RegressionKind, ...] = get_args(RegressionKind)
# The metric that became worse; where a cost is not known, tokens stand in for it.
METRIC_OF_KIND: dict[str, str] = {
    "assertion_regression": "pass_rate",
    "quality_drop": "score",
    "cost_spike": "cost",
    "latency_spike": "latency",
}


@dataclass(frozen=True)
class Observed:
    """The result of one completed production run for one block."""

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
class RegressionChange:
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


@dataclass(frozen=True)
class EvidenceVerdict:
    """One of the four states, with how many runs it rests on and how many it needs."""

    state: State
    count: int
    needed: int


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
