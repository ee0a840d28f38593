"""The verdicts of attempts, cases and suites: passed, failed, error or skipped, with score and reason."""

from __future__ import annotations

from dataclasses import replace

from evals_app.cases.document import Document
from evals_app.cases.prepare import PreparedCase
from evals_app.cases.results import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    SLACK,
    Attempt,
    BlockScore,
    CaseResult,
    SuiteResult,
    mean,
)

NO_ASSERTION = "no assertion was executed"


def skipped(prepared: PreparedCase, reason: str) -> CaseResult:
    """The result of a case that was not tried."""
    return replace(decide(prepared, ()), status=SKIPPED, score=0.0, reason=reason)


def attempt_of(blocks: tuple[BlockScore, ...], *, seconds: float = 0.0) -> Attempt:
    """The verdict of one attempt: the mean score of its blocks, all of which must pass."""
    has_passed = bool(blocks) and all(block.passed for block in blocks)
    return Attempt(
        status=PASSED if has_passed else FAILED,
        score=mean(block.score for block in blocks),
        blocks=blocks,
        error=None if blocks else f"{NO_ASSERTION}: give the case `expected`",
        seconds=seconds,
    )


def decide(prepared: PreparedCase, attempts: tuple[Attempt, ...]) -> CaseResult:
    """The verdict of a case over its attempts: as many as `min_pass` must pass, and the best so many make the score."""
    case = prepared.case
    tries = 1 if prepared.is_frozen else case.repeats
    wanted = min(case.min_pass or case.repeats, tries)
    passed = sum(attempt.status == PASSED for attempt in attempts)
    broken = [attempt for attempt in attempts if attempt.status == ERROR]
    best = sorted((attempt.score for attempt in attempts), reverse=True)[:wanted]
    status = PASSED if passed >= wanted else ERROR if broken else FAILED
    return CaseResult(
        id=case.id,
        description=case.description,
        line=case.line or None,
        status=status,
        score=mean(best),
        is_executed=not prepared.is_frozen,
        repeats=tries,
        min_pass=wanted,
        attempts=attempts,
        reason=_reason(status, attempts, passed, wanted),
    )


def _reason(status: str, attempts: tuple[Attempt, ...], passed: int, wanted: int) -> str:
    if status == PASSED:
        return ""
    error = next((attempt.error for attempt in attempts if attempt.error), "")
    if len(attempts) > 1:
        return f"{passed} of {len(attempts)} repeats passed, {wanted} must" + (f": {error}" if error else "")
    return error or ""


def sum_up(document: Document, cases: tuple[CaseResult, ...], seconds: float) -> SuiteResult:
    """The verdict of a suite: the mean of its cases against the threshold."""
    suite = document.definition.eval
    threshold = suite.threshold if suite else 1.0
    score = mean(case.score for case in cases if case.status != SKIPPED)
    status, reason = _verdict(cases, score, threshold)
    return SuiteResult(
        name=document.name,
        path=document.path,
        threshold=threshold,
        cases=cases,
        status=status,
        score=score,
        reason=reason,
        seconds=seconds,
    )


def _verdict(cases: tuple[CaseResult, ...], score: float, threshold: float) -> tuple[str, str]:
    """Failed if a case failed, error if one could not be run."""
    failed = sum(case.status == FAILED for case in cases)
    unknown = [case for case in cases if case.status in (ERROR, SKIPPED)]
    if unknown:
        reason = f"{len(unknown)} of {len(cases)} cases could not be run: {unknown[0].reason}"
        return (FAILED if failed else ERROR), reason
    if not any(case.assertion_count for case in cases):
        return FAILED, NO_ASSERTION if cases else f"{NO_ASSERTION}: there are no cases"
    if score >= threshold - SLACK:
        return PASSED, ""
    reason = f"the score {score:.3f} is below the threshold {threshold:g}"
    if not failed:
        reason += "; every case passed, so a lower `eval.threshold` would do"
    return FAILED, reason
