"""Results: one grading result per assertion, and their sum for a block."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

# Products and sums of weights outside this range may overflow or vanish, so they are scaled first.
_SAFE_WEIGHTS = (1e-150, 1e150)


@dataclass(slots=True)
class GradingResult:
    """What one assertion answered."""

    passed: bool
    score: float
    reason: str
    type: str = ""
    weight: float = 1.0
    metric: str | None = None
    error: bool = False
    measured: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class AssertionsResult:
    """Every grading result of a block, in the order written, and what they add up to."""

    results: list[GradingResult] = field(default_factory=list)

    def add_result(self, result: GradingResult, weight: float = 1.0) -> None:
        """Append a result that counts with this weight; a bad weight counts as 1.0."""
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        result.weight = float(weight) if is_number and 0 <= weight <= sys.float_info.max else 1.0
        self.results.append(result)

    @property
    def total_score(self) -> float:
        """The sum of score times weight."""
        return _bounded_sum(result.score * result.weight for result in self.results)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return _bounded_sum(result.weight for result in self.results)

    @property
    def aggregate_score(self) -> float:
        """The weighted mean of the scores; 0.0 when nothing has weight."""
        return _weighted_mean(self.results) or 0.0

    @property
    def named_scores(self) -> dict[str, float]:
        """The weighted mean score of each metric; the plain mean where none of its assertions has weight."""
        by_metric: dict[str, list[GradingResult]] = {}
        for result in self.results:
            if result.metric is not None:
                by_metric.setdefault(result.metric, []).append(result)
        means = {metric: (_weighted_mean(results), results) for metric, results in by_metric.items()}
        return {
            metric: math.fsum(result.score for result in results) / len(results) if mean is None else mean
            for metric, (mean, results) in means.items()
        }

    def passed(self, threshold: float | None = None) -> bool:
        """Say whether every assertion passed or, with a threshold, whether the aggregate reaches it."""
        if threshold is None:
            return all(result.passed for result in self.results)
        return self.aggregate_score >= threshold

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-able values, each assertion with its position."""
        return {
            "assertions": [{**result.to_dict(), "index": i} for i, result in enumerate(self.results)],
            "named_scores": self.named_scores,
            "total_score": self.total_score,
            "total_weight": self.total_weight,
            "aggregate_score": self.aggregate_score,
            "passed": self.passed(),
        }


def _bounded_sum(terms: Iterable[float]) -> float:
    """Sum exactly, whatever the order, and stop at the largest float instead of overflowing."""
    try:
        return min(math.fsum(terms), sys.float_info.max)
    except OverflowError:
        return sys.float_info.max


def _weighted_mean(results: list[GradingResult]) -> float | None:
    """Return the weighted mean score, or None when nothing has weight."""
    largest = max((result.weight for result in results), default=0.0)
    if not largest > 0:
        return None
    low, high = _SAFE_WEIGHTS
    if low < largest < high:
        weights = [result.weight for result in results]
    else:
        exponent = -math.frexp(largest)[1]
        weights = [math.ldexp(result.weight, exponent) for result in results]
    score = math.fsum(weight * result.score for weight, result in zip(weights, results, strict=True))
    return score / math.fsum(weights)
