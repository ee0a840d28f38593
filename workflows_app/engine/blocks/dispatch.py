"""`dispatch`: several souls at the same time, one node each, and a node that joins their answers."""

from __future__ import annotations

from workflows_app.engine.blocks.base import FREE, Block
from workflows_app.engine.blocks.llm import ask
from workflows_app.engine.definition import DispatchBlockDef
from workflows_app.engine.results import BlockFailure, BlockResult
from workflows_app.engine.values.outputs import output_text


class DispatchBlock(Block[DispatchBlockDef]):
    """A branch asks its soul; the join lists the branches' answers."""

    type = "dispatch"

    async def run(self, timeout_seconds: float) -> BlockResult:
        if self.step.branch is None:
            return self._join()
        branch = next(one for one in self.block.branches if one.id == self.step.branch)
        return await ask(self.call, branch.soul_ref, self.context.render(branch.task))

    def _join(self) -> BlockResult:
        failures = [part for part in self.step.parts if part.status == "failed"]
        if failures:
            reasons = "; ".join(f"'{part.node_id}': {part.error_message}" for part in failures)
            many = "branch" if len(failures) == 1 else "branches"
            raise BlockFailure("branch_failed", f"{len(failures)} {many} failed: {reasons}")
        answers = [
            {"exit_id": branch.id, "output": part.output}
            for branch, part in zip(self.block.branches, self.step.parts, strict=True)
        ]
        return BlockResult(output=output_text(answers), cost_usd=FREE)
