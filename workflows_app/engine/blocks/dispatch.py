"""`dispatch`: several souls at the same time, one node each, and a node that joins their answers."""

from __future__ import annotations

from workflows_app.engine.blocks.base import FREE, Block, block_as
from workflows_app.engine.blocks.llm import ask
from workflows_app.engine.context import error_text
from workflows_app.engine.definition import DispatchBlockDef
from workflows_app.engine.outputs import output_text
from workflows_app.engine.results import BlockFailure, BlockResult


class DispatchBlock(Block):
    """A branch asks its soul; the join lists what each branch said."""

    type = "dispatch"

    async def run(self, timeout_seconds: float) -> BlockResult:
        block = block_as(DispatchBlockDef, self.context)
        if self.step.branch is None:
            return self._join(block)
        branch = next(one for one in block.branches if one.id == self.step.branch)
        return await ask(self.call, branch.soul_ref, self.context.render(branch.task))

    def _join(self, block: DispatchBlockDef) -> BlockResult:
        failures = [part for part in self.step.parts if part.status == "failed"]
        if failures:
            reasons = "; ".join(f"'{part.node_id}': {error_text(part)}" for part in failures)
            many = "branch" if len(failures) == 1 else "branches"
            raise BlockFailure(
                "branch_failed", f"{len(failures)} {many} failed: {reasons}", is_retryable=False
            )
        said = [
            {"exit_id": branch.id, "output": part.output}
            for branch, part in zip(block.branches, self.step.parts, strict=True)
        ]
        return BlockResult(output=output_text(said), cost_usd=FREE)
