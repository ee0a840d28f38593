"""`loop`: its rounds are nodes of their own; this collects what the last one gave."""

from __future__ import annotations

from workflows_app.engine.blocks.base import FREE, Block
from workflows_app.engine.definition import LoopBlockDef
from workflows_app.engine.results import BlockFailure, BlockResult


class LoopBlock(Block[LoopBlockDef]):
    """Gives the last inner output, and leaves by the last inner block's exit."""

    type = "loop"

    async def run(self, timeout_seconds: float) -> BlockResult:
        if not self.step.parts:
            return BlockResult(output="", cost_usd=FREE)
        last = self.step.parts[-1]
        if last.status == "failed":
            reason = last.error_message or "no reason was recorded"
            if last.node_id != self.step.node_id:
                reason = f"Inner block '{last.node_id}' failed (execution {last.iteration}): {reason}"
            raise BlockFailure("inner_block_failed", reason)
        return BlockResult(output=last.output, exit_handle=last.exit_handle, cost_usd=FREE)
