"""One file per block type; importing this registers them all."""

from workflows_app.engine.blocks import code, dispatch, gate, llm, loop, workflow  # noqa: F401
