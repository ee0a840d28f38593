"""`workflow`: a child run with inputs and outputs mapped."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from workflows_app.engine.blocks.base import Block, ChildResult, block_as
from workflows_app.engine.definition import WorkflowBlockDef
from workflows_app.engine.outputs import nested, output_text
from workflows_app.engine.results import BlockFailure, BlockResult


class WorkflowBlock(Block):
    """Runs the child to its end; its outputs are this block's output, as JSON."""

    type = "workflow"

    async def run(self, timeout_seconds: float) -> BlockResult:
        block = block_as(WorkflowBlockDef, self.context)
        if self.tools.run_child is None:
            raise BlockFailure("no_children", "This run cannot start child runs.", is_retryable=False)
        self.call.warnings.extend(self.tools.spend.check_child(block.id))
        child = await self.tools.run_child(block.workflow_ref, self.context.inputs(), block.max_depth)
        total = child.tokens.total if child.tokens else None
        self.tools.spend.add(block.id, child.cost_usd, total)
        if child.status == "completed":
            return self._result(block, child, output_text(self._mapped(block, child)), "completed")
        error = _error_of(block, child)
        if block.on_error == "catch":
            return self._result(block, child, output_text({"error": error}), "error", error)
        raise BlockFailure("child_failed", error["message"], details={"child_run": child.run_id})

    def _mapped(self, block: WorkflowBlockDef, child: ChildResult) -> dict[str, Any]:
        """The child's outputs under the names this workflow gives them."""
        if block.outputs is None:
            return dict(child.outputs)
        missing = [name for name in block.outputs.values() if name not in child.outputs]
        if missing:
            known = ", ".join(child.outputs) or "none"
            raise BlockFailure(
                "unknown_output",
                f"Child '{block.workflow_ref}' gave no output '{missing[0]}'; it gave {known}.",
                is_retryable=False,
                details={"child_run": child.run_id},
            )
        return nested({target: child.outputs[source] for target, source in block.outputs.items()})

    def _result(
        self,
        block: WorkflowBlockDef,
        child: ChildResult,
        output: str,
        exit_handle: str,
        error: dict[str, Any] | None = None,
    ) -> BlockResult:
        return BlockResult(
            output=output,
            exit_handle=exit_handle,
            cost_usd=None if child.cost_usd is None else Decimal(str(child.cost_usd)),
            tokens=child.tokens,
            error=error,
            details={"child_run": child.run_id, "workflow": block.workflow_ref},
        )


def _error_of(block: WorkflowBlockDef, child: ChildResult) -> dict[str, str]:
    told = str((child.error or {}).get("message", "")) or "no reason was given"
    return {"type": "child_failed", "message": f"Child run of '{block.workflow_ref}' {child.status}: {told}"}
