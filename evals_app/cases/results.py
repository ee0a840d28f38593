"""What a suite of eval cases answered: plain data, from one assertion up to the suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from evals_app.assertions import GradingResult

PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
# Sums of scores are inexact; a suite must not fail over the last digit.
SLACK = 1e-9
LONGEST_OUTPUT = 10_000  # characters of an output that reports and tables keep


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion of a case: what it asked, where it is written, and what it answered."""

    config: dict[str, Any]
    result: GradingResult
    is_own: bool = False  # from the block's own list, not from `expected`
    index: int = 0
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.result.to_dict(),
            "value": self.config.get("value"),
            "threshold": self.config.get("threshold"),
            "from": "block" if self.is_own else "expected",
            "index": self.index,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class BlockScore:
    """What the assertions said of one block; without an output there was nothing to ask."""

    block_id: str
    score: float
    passed: bool
    checks: tuple[Check, ...] = ()
    output: str | None = None
    is_frozen: bool = False
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "block": self.block_id,
            "score": self.score,
            "passed": self.passed,
            "frozen": self.is_frozen,
            "output": _shortened(self.output),
            "error": self.error,
            "assertions": [check.to_dict() for check in self.checks],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """One node of an executed case, as it is kept when there is somewhere to keep it."""

    node_id: str
    iteration: int = 1
    output: str = ""
    cost_usd: float | None = None
    tokens: dict[str, int] | None = None
    latency_ms: float | None = None
    soul_id: str = ""
    soul_version: str = ""
    error: dict[str, Any] | None = None
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One time a case was tried."""

    status: str
    score: float
    blocks: tuple[BlockScore, ...] = ()
    error: str | None = None
    cost_usd: float | None = 0.0  # None: something was executed whose price is unknown
    seconds: float = 0.0
    nodes: tuple[NodeOutcome, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict)
    run_failed: bool = False

    @property
    def assertion_count(self) -> int:
        return sum(len(block.checks) for block in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "score": self.score,
            "error": self.error,
            "cost_usd": self.cost_usd,
            "seconds": round(self.seconds, 4),
            "blocks": [block.to_dict() for block in self.blocks],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The verdict on one case: passed, failed, error (could not be tried) or skipped."""

    id: str
    status: str
    score: float
    description: str = ""
    line: int | None = None
    is_executed: bool = False
    repeats: int = 1
    min_pass: int = 1
    attempts: tuple[Attempt, ...] = ()
    reason: str = ""

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    @property
    def seconds(self) -> float:
        return sum(attempt.seconds for attempt in self.attempts)

    @property
    def cost_usd(self) -> float | None:
        return total_cost(attempt.cost_usd for attempt in self.attempts)

    @property
    def assertion_count(self) -> int:
        return sum(attempt.assertion_count for attempt in self.attempts)

    @property
    def told(self) -> Attempt | None:
        """The attempt that shows why: the first that did not pass, else the last."""
        failed = [attempt for attempt in self.attempts if attempt.status != PASSED]
        return next(iter((*failed, *self.attempts[-1:])), None)

    def failing(self) -> Iterator[tuple[BlockScore, Check | None]]:
        """Each failed assertion of the attempt that shows why; a block without an output stands with None."""
        if self.told is None or self.passed:
            return
        for block in self.told.blocks:
            if block.error is not None:
                yield block, None
            yield from ((block, check) for check in block.checks if not check.result.passed)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "description": self.description,
            "line": self.line,
            "status": self.status,
            "passed": self.passed,
            "score": self.score,
            "reason": self.reason,
            "executed": self.is_executed,
            "repeats": self.repeats,
            "min_pass": self.min_pass,
            "cost_usd": self.cost_usd,
            "seconds": round(self.seconds, 4),
            "attempts": [attempt.to_dict() for attempt in self.attempts],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """The verdict on one workflow's `eval:` section."""

    name: str
    threshold: float
    cases: tuple[CaseResult, ...]
    status: str
    score: float
    reason: str = ""
    path: str | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    @property
    def cost_usd(self) -> float | None:
        return total_cost(case.cost_usd for case in self.cases)

    @property
    def assertion_count(self) -> int:
        return sum(case.assertion_count for case in self.cases)

    def count(self, status: str) -> int:
        """How many cases ended so."""
        return sum(case.status == status for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        return {
            "workflow": self.name,
            "file": self.path,
            "status": self.status,
            "passed": self.passed,
            "score": self.score,
            "threshold": self.threshold,
            "reason": self.reason,
            "cost_usd": self.cost_usd,
            "seconds": round(self.seconds, 4),
            "counts": {status: self.count(status) for status in (PASSED, FAILED, ERROR, SKIPPED)},
            "cases": [case.to_dict() for case in self.cases],
        }


def _shortened(output: str | None) -> str | None:
    if output is None or len(output) <= LONGEST_OUTPUT:
        return output
    return f"{output[:LONGEST_OUTPUT]}…"


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum, or None if a part of it is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def mean(scores: Iterable[float]) -> float:
    """The mean; 0.0 of nothing."""
    found = list(scores)
    return sum(found) / len(found) if found else 0.0
