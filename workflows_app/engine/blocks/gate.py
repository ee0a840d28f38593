"""`gate`: passes or fails another block's output, by a soul's judgement or by its assertions."""

from __future__ import annotations

from dataclasses import replace

from workflows_app.engine.blocks.base import FREE, Block, block_as
from workflows_app.engine.blocks.llm import ask
from workflows_app.engine.conditions import as_text
from workflows_app.engine.context import UnknownPath
from workflows_app.engine.definition import GateBlockDef
from workflows_app.engine.exits import verdict_exit
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure, BlockResult

_QUESTION = (
    "Judge the output below. Begin your answer with PASS if it is good enough and with FAIL if it is not, "
    "then say why in a sentence or two."
)


class GateBlock(Block):
    """Leaves by `pass` or by `fail`."""

    type = "gate"

    async def run(self, timeout_seconds: float) -> BlockResult:
        block = block_as(GateBlockDef, self.context)
        if block.soul_ref is None:
            has_passed, reason = self._by_assertions(block)
            verdict = f"{'PASS' if has_passed else 'FAIL'}: {reason}"
            return BlockResult(output=verdict, exit_handle="pass" if has_passed else "fail", cost_usd=FREE)
        result = await ask(self.call, block.soul_ref, f"{_QUESTION}\n\nOutput:\n{self._judged_text(block)}")
        return replace(result, exit_handle=verdict_exit(result.output))

    def _judged_text(self, block: GateBlockDef) -> str:
        try:
            if block.extract_field is None:
                return as_text(self.context.lookup(block.eval_key))
            judged_id = self._judged_id(block)
            return as_text(self.context.lookup(f"blocks.{judged_id}.json.{block.extract_field}"))
        except UnknownPath as error:
            raise BlockFailure("unknown_path", f"Nothing to judge: {error}", is_retryable=False) from None

    def _judged_id(self, block: GateBlockDef) -> str:
        parts = self.context.run.canonical(block.eval_key)
        if parts[0] != "blocks":
            raise UnknownPath(f"'{block.eval_key}' is not a block's output.")
        return parts[1]

    def _judged(self, block: GateBlockDef) -> NodeRecord:
        try:
            parts = self.context.run.canonical(block.eval_key)
            return self.context.run.record_of(self._judged_id(block), self.context.visible, parts)
        except UnknownPath as error:
            raise BlockFailure("unknown_path", f"Nothing to judge: {error}", is_retryable=False) from None

    def _by_assertions(self, block: GateBlockDef) -> tuple[bool, str]:
        record = self._judged(block)
        name = f"'{record.node_id}'"
        if record.eval_passed is None and record.eval_score is None:
            return False, f"{name} was not evaluated, so nothing says that it passed."
        if block.threshold is None:
            verdict = "passed" if record.eval_passed else "failed"
            return bool(record.eval_passed), f"the assertions of {name} {verdict}{_score(record)}."
        if record.eval_score is None:
            return False, f"{name} has no score: its evaluation broke."
        has_passed = record.eval_score >= block.threshold
        return has_passed, (
            f"{name} scored {record.eval_score:.3f}, "
            f"{'at least' if has_passed else 'below'} the threshold of {block.threshold:g}."
        )


def _score(record: NodeRecord) -> str:
    return "" if record.eval_score is None else f" with a score of {record.eval_score:.3f}"
