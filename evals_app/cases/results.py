"""The results of eval cases as plain data, from one assertion up to the suite."""

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
class CaseAssertion:
    """One assertion of a case and where it is written."""

    config: dict[str, Any]
    is_own: bool  # from the block's own list, not from `expected`
    index: int
    line: int | None


@dataclass(frozen=True, slots=True)
class Check(CaseAssertion):
    """An assertion of a case and its result."""

    result: GradingResult

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
    """The results of one block's assertions; without an output there are none."""

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
            "output": self._short_output(),
            "error": self.error,
            "assertions": [check.to_dict() for check in self.checks],
        }

    def _short_output(self) -> str | None:
        if self.output is None or len(self.output) <= LONGEST_OUTPUT:
            return self.output
        return f"{self.output[:LONGEST_OUTPUT]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """One node of an executed case, as it is stored where there is a database."""

    node_id: str
    iteration: int = 1
    output: str = ""
    cost_usd: float | None = None
    tokens: dict[str, int] | None = None
    latency_ms: float | None = None
    soul_id: str = ""
    soul_version: str = ""
    prompt: str = ""
    prompt_hash: str = ""
    error: dict[str, Any] | None = None
    is_frozen: bool = False

    @property
    def total_tokens(self) -> int | None:
        return self.tokens["total"] if self.tokens else None


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
        return sum(len(block.checks) for attempt in self.attempts for block in attempt.blocks)

    @property
    def decisive_attempt(self) -> Attempt | None:
        """The attempt that shows why: the first that did not pass, else the last."""
        failed = (attempt for attempt in self.attempts if attempt.status != PASSED)
        return next(failed, self.attempts[-1] if self.attempts else None)

    def failing(self) -> Iterator[tuple[BlockScore, Check | None]]:
        """Each failed assertion of the decisive attempt; a block without an output comes with None."""
        attempt = self.decisive_attempt
        if attempt is None or self.passed:
            return
        for block in attempt.blocks:
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
        """How many cases have this status."""
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


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum, or None if a part of it is unknown."""
    found = list(costs)
    return None if None in found else sum(filter(None, found), 0.0)


def mean(scores: Iterable[float]) -> float:
    """The mean; 0.0 of nothing."""
    found = list(scores)
    return sum(found) / len(found) if found else 0.0
