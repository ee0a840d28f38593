"""Which assertions decide a case, and whether anything has to be executed for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions
from evals_app.cases.document import Document, cases_in
from evals_app.cases.results import BlockScore, CaseAssertion, Check, NodeOutcome
from workflows_app.engine.definition import EvalCase, WorkflowDefinition

# What only an execution can measure: a block's own assertions of these types skip frozen outputs.
MEASURED_TYPES = frozenset({"cost", "latency"})


@dataclass(frozen=True)
class BlockAssertions:
    """The assertions that one block has to pass in a case."""

    block_id: str
    assertions: tuple[CaseAssertion, ...]
    plan: AssertionPlan

    def grade(self, context: AssertionContext, *, is_frozen: bool) -> BlockScore:
        """Check one output by every assertion."""
        graded = self.plan.run(context)
        checks = tuple(
            Check(one.config, one.is_own, one.index, one.line, result)
            for one, result in zip(self.assertions, graded.results, strict=True)
        )
        has_passed = bool(checks) and graded.passed()
        return BlockScore(
            self.block_id,
            # Where no assertion has weight, the verdict is the score.
            graded.aggregate_score if graded.total_weight > 0 else float(has_passed),
            has_passed,
            checks,
            str(context.output),
            is_frozen,
            None if checks else "it has no assertion that could be checked",
        )


@dataclass(frozen=True)
class PreparedCase:
    """A case with its assertions compiled."""

    case: EvalCase
    blocks: tuple[BlockAssertions, ...]

    @property
    def is_frozen(self) -> bool:
        """Whether every block it checks has a fixture, so that nothing is executed."""
        return all(block.block_id in self.case.fixtures for block in self.blocks)


def prepare(document: Document, index: int) -> PreparedCase:
    """Compile the assertions of one case."""
    case = cases_in(document.definition)[index]
    decides_by_blocks = case.include_block_assertions and not case.expected
    names = document.definition.assertions_by_block if decides_by_blocks else case.expected
    return PreparedCase(case, tuple(_block_assertions(document, case, index, name) for name in names))


def _block_assertions(document: Document, case: EvalCase, case_index: int, block_id: str) -> BlockAssertions:
    block = document.definition.blocks[block_id]
    line = document.parsed.line
    assertions = [
        CaseAssertion(config, False, at, line(("eval", "cases", case_index, "expected", block_id, at)))
        for at, config in enumerate(case.expected.get(block_id, ()))
    ]
    if case.include_block_assertions:
        assertions += [
            CaseAssertion(config, True, at, line(("blocks", block_id, "assertions", at)))
            for at, config in enumerate(block.assertions or ())
            if block_id not in case.fixtures or not is_measured(config)
        ]
    return BlockAssertions(
        block_id, tuple(assertions), compile_assertions([one.config for one in assertions])
    )


def context_for_outcome(
    definition: WorkflowDefinition, node: NodeOutcome, inputs: Mapping[str, Any], workflow_id: str
) -> AssertionContext:
    """What the assertions of a node of a case are checked against; a case has no run yet."""
    return AssertionContext.for_node(
        node,
        block_type=definition.blocks[node.node_id.partition(".")[0]].type,
        variables=dict(inputs),
        run_id=None,
        workflow_id=workflow_id,
    )


def is_measured(config: Mapping[str, Any]) -> bool:
    """Whether an assertion is about what an execution took."""
    return str(config.get("type", "")).removeprefix("not-") in MEASURED_TYPES
