"""One file per block type; importing this registers them all."""

from workflows_app.engine.blocks import code, dispatch, gate, llm, loop, workflow
from workflows_app.engine.blocks.base import BLOCKS, Block, Call, ChildResult, Tools

__all__ = [
    "BLOCKS",
    "Block",
    "Call",
    "ChildResult",
    "Tools",
    "code",
    "dispatch",
    "gate",
    "llm",
    "loop",
    "workflow",
]
