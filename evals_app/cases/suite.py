"""Runs the cases of a document: frozen ones at once, the others several at a time, and sums up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from evals_app.assertions import AssertionContext
from evals_app.cases.document import Document
from evals_app.cases.prepare import PreparedCase, prepare
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
from workflows_app.engine.outputs import code_output
from workflows_app.engine.results import BlockFailure

if TYPE_CHECKING:
    from evals_app.cases.budget import Budget
    from evals_app.cases.surroundings import Surroundings

CASES_AT_ONCE = 4
NO_ASSERTION = "no assertion was executed"
OnCase = Callable[[CaseResult], None]


@dataclass(frozen=True)
class SuiteOptions:
    """How to run a suite; without a choice, every case."""

    only: Collection[str] = ()
    fail_fast: bool = False
    max_cost_usd: Decimal | None = None
    cases_at_once: int = CASES_AT_ONCE


@dataclass
class Evaluation:
    """Several suites under one set of options and one budget; nothing that executes is loaded before it is needed."""

    options: SuiteOptions = field(default_factory=SuiteOptions)
    has_stopped: bool = False
    _budget: Budget | None = None

    @property
    def budget(self) -> Budget:
        if self._budget is None:
            from evals_app.cases.budget import Budget

            self._budget = Budget(self.options.max_cost_usd)
        return self._budget

    def run(
        self, document: Document, surroundings: Surroundings | None = None, on_case: OnCase | None = None
    ) -> SuiteResult:
        """Run one document's cases; `on_case` hears of each as it is decided."""
        started = time.perf_counter()
        suite = document.definition.eval
        cases = suite.cases if suite else ()
        chosen = [
            at for at, case in enumerate(cases) if not self.options.only or case.id in self.options.only
        ]
        prepared = {at: prepare(document, at) for at in chosen}
        results: dict[int, CaseResult] = {}

        def settle(at: int, result: CaseResult) -> None:
            results[at] = result
            self.has_stopped |= self.options.fail_fast and result.status in (FAILED, ERROR)
            if on_case:
                on_case(result)

        for at, one in prepared.items():
            if one.is_frozen:
                settle(at, self._skipped(one) or _frozen_result(document, one))
        waiting = {at: one for at, one in prepared.items() if at not in results}
        if waiting:
            from evals_app.cases.rounds import execute_all

            execute_all(self, document, waiting, surroundings, settle)
        found = tuple(results[at] for at in chosen)
        return sum_up(document, found, time.perf_counter() - started)

    def why_skipped(self) -> str | None:
        """Why no further case is started, if none is."""
        if self.has_stopped:
            return "not run: an earlier case failed (--fail-fast)"
        if self.options.max_cost_usd is not None and self.budget.is_spent:
            return f"not run: the ${self.options.max_cost_usd:f} of --max-cost are spent"
        return None

    def _skipped(self, prepared: PreparedCase) -> CaseResult | None:
        return (
            skipped(prepared, "not run: an earlier case failed (--fail-fast)") if self.has_stopped else None
        )


def skipped(prepared: PreparedCase, reason: str) -> CaseResult:
    """The result of a case that was not tried."""
    return replace(decide(prepared, ()), status=SKIPPED, score=0.0, reason=reason)


def _frozen_result(document: Document, prepared: PreparedCase) -> CaseResult:
    """Grade a case whose outputs are all given; repeating it could only say the same."""
    started = time.perf_counter()
    case = prepared.case
    blocks = []
    for block in prepared.blocks:
        try:
            output = code_output(case.fixtures[block.block_id])[0]
        except BlockFailure as failure:
            blocks.append(BlockScore(block.block_id, 0.0, False, is_frozen=True, error=failure.message))
            continue
        context = AssertionContext(
            output=output,
            block_id=block.block_id,
            block_type=block.block_type,
            variables=dict(case.inputs),
            workflow_id=document.name,
        )
        blocks.append(block.grade(context, is_frozen=True))
    seconds = time.perf_counter() - started
    return decide(prepared, (attempt_of(tuple(blocks), seconds=seconds),))


def attempt_of(blocks: tuple[BlockScore, ...], *, seconds: float = 0.0) -> Attempt:
    """An attempt judged by its blocks: their mean, and all of them."""
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
    told = next((attempt.error for attempt in attempts if attempt.error), "")
    if len(attempts) > 1:
        return f"{passed} of {len(attempts)} repeats passed, {wanted} must" + (f": {told}" if told else "")
    return told or ""


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
    """Failed is what was seen to fail; error is what could not be seen."""
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
