"""`workflow`: a child run with inputs and outputs mapped."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from workflows_app.engine.blocks.base import Block, ChildResult
from workflows_app.engine.definition import WorkflowBlockDef
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.values.outputs import nested, output_text


class WorkflowBlock(Block[WorkflowBlockDef]):
    """Runs the child to its end; its outputs are this block's output, as JSON."""

    type = "workflow"

    async def run(self, timeout_seconds: float) -> BlockResult:
        block = self.block
        if self.tools.run_child is None:
            raise BlockFailure("no_children", "This run cannot start child runs.")
        self.call.warnings.extend(self.tools.spend.check_child(block.id))
        child = await self.tools.run_child(block.workflow_ref, self.context.inputs(), block.max_depth)
        total = child.tokens.total if child.tokens else None
        self.tools.spend.add(block.id, child.cost_usd, total)
        error = None
        if child.status != "completed":
            reason = (child.error or {}).get("message") or "no reason was recorded"
            message = f"Child run of '{block.workflow_ref}' {child.status}: {reason}"
            error = {"type": "child_failed", "message": message}
            if block.on_error != "catch":
                details = {"child_run": child.run_id}
                raise BlockFailure("child_failed", message, is_retryable=True, details=details)
        return BlockResult(
            output=output_text({"error": error} if error else self._mapped(child)),
            exit_handle="error" if error else "completed",
            cost_usd=None if child.cost_usd is None else Decimal(str(child.cost_usd)),
            tokens=child.tokens,
            error=error,
            details={"child_run": child.run_id, "workflow": block.workflow_ref},
        )

    def _mapped(self, child: ChildResult) -> dict[str, Any]:
        """The child's outputs under the names this workflow gives them."""
        outputs = self.block.outputs
        if outputs is None:
            return dict(child.outputs)
        missing = [name for name in outputs.values() if name not in child.outputs]
        if missing:
            known = ", ".join(child.outputs) or "none"
            raise BlockFailure(
                "unknown_output",
                f"Child '{self.block.workflow_ref}' gave no output '{missing[0]}'; it gave {known}.",
                details={"child_run": child.run_id},
            )
        return nested({target: child.outputs[source] for target, source in outputs.items()})
