"""What the validator lets a block read is what the block can read when it runs."""

from __future__ import annotations

from random import Random

import pytest

from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.graph import Graph
from workflows_app.engine.validate import compile_document

TRUNK = """
souls: {{s: {{role: S}}}}
blocks:
{blocks}
"""


def document(rng: Random, reader: str = "", read: str = "") -> str:
    """Five top-level blocks with random dependencies, two of them loops, one of which has a loop inside."""
    inner = {"b1": ["b1_x", "b1_y"], "b3": ["b3_x", "b3_l"], "b3_l": ["b3_z"]}
    lines = []
    for index in range(5):
        name = f"b{index}"
        above = [f"b{other}" for other in range(index) if rng.random() < 0.4]
        lines.append(block(name, inner.get(name), above, reader, read))
    for name in ("b1_x", "b1_y", "b3_x", "b3_l", "b3_z"):
        lines.append(block(name, inner.get(name), [], reader, read))
    return TRUNK.format(blocks="\n".join(lines))


def block(name: str, inner: list[str] | None, above: list[str], reader: str, read: str) -> str:
    depends = f", depends: [{', '.join(above)}]" if above else ""
    if inner:
        return f"  {name}: {{type: loop, inner_block_refs: [{', '.join(inner)}]{depends}}}"
    prompt = f"{{{{ {read} }}}}" if name == reader else "x"
    return f'  {name}: {{type: llm, soul_ref: s, prompt: "{prompt}"{depends}}}'


@pytest.mark.parametrize("seed", range(6))
def test_a_path_is_valid_exactly_where_it_is_known(seed: int) -> None:
    definition = compile_document(document(Random(seed)))
    graph = Graph(definition)
    readers = [block.id for block in definition.blocks.values() if block.type == "llm"]
    verdicts = set()
    for reader in readers:
        for read in definition.blocks:
            try:
                compile_document(document(Random(seed), reader, read))
                is_valid = True
            except InvalidDocument:
                is_valid = False
            assert is_valid == (read in graph.upstream(reader)), f"{reader} reads {read}"
            verdicts.add(is_valid)
    assert verdicts == {True, False}
