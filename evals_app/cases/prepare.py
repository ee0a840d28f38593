"""Which assertions decide a case, and whether anything has to be executed to ask them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions
from evals_app.cases.document import Document
from evals_app.cases.results import BlockScore, Check
from workflows_app.engine.definition import EvalCase

# What only an execution can measure; of a frozen output a block's own assertions of these kinds say nothing.
MEASURED_TYPES = frozenset({"cost", "latency"})


@dataclass(frozen=True)
class Asked:
    """One assertion and where it is written."""

    config: dict[str, Any]
    is_own: bool
    index: int
    line: int | None


@dataclass(frozen=True)
class AskedBlock:
    """The assertions one block has to answer in a case."""

    block_id: str
    block_type: str
    asked: tuple[Asked, ...]
    plan: AssertionPlan

    def grade(self, context: AssertionContext, *, is_frozen: bool) -> BlockScore:
        """Ask every assertion of one output."""
        graded = self.plan.run(context)
        checks = tuple(
            Check(asked.config, result, asked.is_own, asked.index, asked.line)
            for asked, result in zip(self.asked, graded.results, strict=True)
        )
        has_passed = bool(checks) and graded.passed()
        return BlockScore(
            self.block_id,
            _score(graded.aggregate_score, graded.total_weight, has_passed),
            has_passed,
            checks,
            str(context.output),
            is_frozen,
            None if checks else "it has no assertion that could be asked",
        )


@dataclass(frozen=True)
class PreparedCase:
    """A case with its assertions compiled."""

    case: EvalCase
    blocks: tuple[AskedBlock, ...]

    @property
    def is_frozen(self) -> bool:
        """Whether every block asked has a fixture, so that nothing is executed."""
        return all(block.block_id in self.case.fixtures for block in self.blocks)


def prepare(document: Document, index: int) -> PreparedCase:
    """Compile the assertions of one case."""
    suite = document.definition.eval
    assert suite is not None, "a document without cases has none to prepare"
    case = suite.cases[index]
    blocks = tuple(_asked_block(document, case, index, name) for name in _decisive(document, case))
    return PreparedCase(case, blocks)


def _decisive(document: Document, case: EvalCase) -> list[str]:
    """The blocks that decide a case: the expected ones; with none of these, and only if asked, all with assertions."""
    if case.expected or not case.include_block_assertions:
        return list(case.expected)
    return [block.id for block in document.definition.blocks.values() if block.assertions]


def _asked_block(document: Document, case: EvalCase, case_index: int, block_id: str) -> AskedBlock:
    block = document.definition.blocks[block_id]
    asked = [
        Asked(config, False, at, document.line("eval", "cases", case_index, "expected", block_id, at))
        for at, config in enumerate(case.expected.get(block_id, ()))
    ]
    if case.include_block_assertions:
        asked += [
            Asked(config, True, at, document.line("blocks", block_id, "assertions", at))
            for at, config in enumerate(block.assertions or ())
            if block_id not in case.fixtures or not is_measured(config)
        ]
    return AskedBlock(block_id, block.type, tuple(asked), compile_assertions([one.config for one in asked]))


def is_measured(config: Mapping[str, Any]) -> bool:
    """Whether an assertion is about what an execution took."""
    return str(config.get("type", "")).removeprefix("not-") in MEASURED_TYPES


def _score(aggregate: float, weight: float, has_passed: bool) -> float:
    """A block's score; one whose assertions all weigh nothing is judged by its verdict."""
    return aggregate if weight > 0 else float(has_passed)
