"""`gate`: passes or fails another block's output, by a soul's verdict or by its assertions."""

from __future__ import annotations

from dataclasses import replace

from workflows_app.engine.blocks.base import FREE, Block
from workflows_app.engine.blocks.llm import ask
from workflows_app.engine.definition import GateBlockDef
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.values.conditions import as_text
from workflows_app.engine.values.context import UnknownPath
from workflows_app.engine.values.exits import verdict_exit

_QUESTION = (
    "Judge the output below. Begin your answer with PASS if it is good enough and with FAIL if it is not, "
    "then say why in a sentence or two."
)


class GateBlock(Block[GateBlockDef]):
    """Leaves by `pass` or by `fail`."""

    type = "gate"

    async def run(self, timeout_seconds: float) -> BlockResult:
        soul_ref = self.block.soul_ref
        try:
            parts = self.context.run.canonical(self.block.eval_key)
            record = self.context.run.record_of(parts[1], self.context.visible, parts)
            field = self.block.extract_field
            path = self.block.eval_key if field is None else f"blocks.{parts[1]}.json.{field}"
            text = as_text(self.context.lookup(path)) if soul_ref else ""
        except UnknownPath as error:
            raise BlockFailure("unknown_path", f"The gate has no output to check: {error}") from None
        if soul_ref is None:
            has_passed, reason = self._by_assertions(record)
            verdict = f"{'PASS' if has_passed else 'FAIL'}: {reason}"
            return BlockResult(output=verdict, exit_handle="pass" if has_passed else "fail", cost_usd=FREE)
        result = await ask(self.call, soul_ref, f"{_QUESTION}\n\nOutput:\n{text}")
        return replace(result, exit_handle=verdict_exit(result.output))

    def _by_assertions(self, record: NodeRecord) -> tuple[bool, str]:
        threshold = self.block.threshold
        name = f"'{record.node_id}'"
        if record.eval_passed is None and record.eval_score is None:
            return False, f"{name} was not evaluated, so nothing says that it passed."
        if threshold is None:
            verdict = "passed" if record.eval_passed else "failed"
            score = "" if record.eval_score is None else f" with a score of {record.eval_score:.3f}"
            return bool(record.eval_passed), f"the assertions of {name} {verdict}{score}."
        if record.eval_score is None:
            return False, f"{name} has no score: its evaluation broke."
        has_passed = record.eval_score >= threshold
        return has_passed, (
            f"{name} scored {record.eval_score:.3f}, "
            f"{'at least' if has_passed else 'below'} the threshold of {threshold:g}."
        )
