"""Runs the cases of a document, frozen ones first, and sums up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from evals_app.cases.budget import Budget
from evals_app.cases.document import Document, cases_in
from evals_app.cases.prepare import PreparedCase, context_for_outcome, prepare
from evals_app.cases.results import ERROR, FAILED, BlockScore, CaseResult, NodeOutcome, SuiteResult
from evals_app.cases.verdicts import attempt_of, decide, skipped, sum_up
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.outputs import code_output

if TYPE_CHECKING:
    from evals_app.cases.environment import CaseEnvironment

CASES_AT_ONCE = 4
STOPPED = "not run: an earlier case failed (--fail-fast)"
OnCase = Callable[[CaseResult], None]


@dataclass
class Evaluation:
    """Several suites under one set of options and one budget."""

    only: Collection[str] = ()
    fail_fast: bool = False
    max_cost_usd: Decimal | None = None
    cases_at_once: int = CASES_AT_ONCE
    budget: Budget | None = None
    has_stopped: bool = False

    def run(
        self, document: Document, environment: CaseEnvironment | None = None, on_case: OnCase | None = None
    ) -> SuiteResult:
        """Run one document's cases; `on_case` gets each result as soon as it is known."""
        started = time.perf_counter()
        prepared = {
            position: prepare(document, position)
            for position, case in enumerate(cases_in(document.definition))
            if not self.only or case.id in self.only
        }
        results: dict[int, CaseResult] = {}

        def finish(position: int, result: CaseResult) -> None:
            results[position] = result
            self.has_stopped |= self.fail_fast and result.status in (FAILED, ERROR)
            if on_case:
                on_case(result)

        for position, case in prepared.items():
            if case.is_frozen:
                frozen = skipped(case, STOPPED) if self.has_stopped else _frozen_result(document, case)
                finish(position, frozen)
        waiting = {position: case for position, case in prepared.items() if position not in results}
        if waiting:
            self._execute(document, waiting, environment, finish)
        return sum_up(
            document, tuple(results[position] for position in prepared), time.perf_counter() - started
        )

    def _execute(
        self,
        document: Document,
        cases: Mapping[int, PreparedCase],
        environment: CaseEnvironment | None,
        finish: Callable[[int, CaseResult], None],
    ) -> None:
        # asyncio and the engine take as long to load as many frozen cases take to check
        import asyncio

        from evals_app.cases.environment import CaseEnvironment
        from evals_app.cases.execution import execute_cases

        budget = self.budget = self.budget or Budget(self.max_cost_usd)

        def why_skipped() -> str | None:
            if self.has_stopped:
                return STOPPED
            return f"not run: the ${budget.cap_usd:f} of --max-cost are spent" if budget.is_spent else None

        asyncio.run(
            execute_cases(
                document,
                cases,
                environment or CaseEnvironment(),
                budget,
                at_once=self.cases_at_once,
                why_skipped=why_skipped,
                finish=finish,
            )
        )


def _frozen_result(document: Document, prepared: PreparedCase) -> CaseResult:
    """Grade a case whose outputs are all fixtures; repeating it could not change the result."""
    started = time.perf_counter()
    case = prepared.case
    blocks = []
    for block in prepared.blocks:
        try:
            output = code_output(case.fixtures[block.block_id])[0]
        except BlockFailure as failure:
            blocks.append(BlockScore(block.block_id, 0.0, False, is_frozen=True, error=failure.message))
            continue
        node = NodeOutcome(node_id=block.block_id, output=output, is_frozen=True)
        context = context_for_outcome(document.definition, node, case.inputs, document.name)
        blocks.append(block.grade(context, is_frozen=True))
    seconds = time.perf_counter() - started
    return decide(prepared, (attempt_of(tuple(blocks), seconds=seconds),))
