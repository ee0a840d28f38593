"""The validator and the engine agree, and neither drags in what it does not need."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.graph import Graph
from workflows_app.engine.parse import parse
from workflows_app.engine.schema.kinds import Checker
from workflows_app.engine.validate import compile_document
from workflows_app.engine.validate.blocks import read_blocks
from workflows_app.engine.validate.graph import DraftGraph

ROOT = Path(__file__).resolve().parents[4]

NAMES = [f"b{n}" for n in range(7)]


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Blocks that depend on earlier ones, gates that route to later ones, a loop around some."""
    rows = ["blocks:"]
    inner = set(draw(st.lists(st.sampled_from(NAMES[2:5]), max_size=2, unique=True)))
    if inner:
        rows.append(
            f"  round_about: {{type: loop, depends: b0, inner_block_refs: [{', '.join(sorted(inner))}]}}"
        )
    for index, name in enumerate(NAMES):
        before = draw(st.lists(st.sampled_from(NAMES[:index]), max_size=2, unique=True)) if index else []
        if inner and index > 4 and draw(st.booleans()):
            before.append("round_about")
        depends = f", depends: [{', '.join(before)}]" if before else ""
        later = [one for one in NAMES[index + 1 :] if one not in inner]
        if before and len(later) > 1 and name not in inner and draw(st.booleans()):
            judged, (yes, no) = before[0], draw(st.permutations(later))[:2]
            rows.append(
                f"  {name}: {{type: gate, eval_key: {judged}, soul_ref: s, pass: {yes}, fail: {no}{depends}}}"
            )
        else:
            rows.append(f"  {name}: {{type: llm, soul_ref: s{depends}}}")
    return "\n".join(rows) + "\n"


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_whatever_the_validator_lets_a_block_see_the_engine_shows_it(text: str) -> None:
    try:
        definition = compile_document(text)
    except InvalidDocument:
        return
    to = Checker()
    document: dict[str, Any] = parse(text).value
    drafts = DraftGraph(read_blocks(document["blocks"], to), {}, to)
    engine = Graph(definition)
    for viewer in definition.blocks:
        seen = {name for name in definition.blocks if drafts.sees(viewer, name)}
        shown = {name for name in definition.blocks if name in engine.upstream(viewer)}
        assert seen <= shown
        if viewer not in definition.inner_blocks:
            assert seen >= shown - set(engine.inside(viewer, deep=True))


def test_validating_loads_neither_django_nor_anything_heavy() -> None:
    script = (
        "import sys\n"
        "from workflows_app.engine.validate import compile_document\n"
        "compile_document('blocks: {a: {type: code, code: \"def main(data): return 1\"}}')\n"
        "heavy = {'django', 'jsonschema', 'nltk', 'rouge_score', 'regex', 'rapidfuzz', 'httpx2', 'evals_app'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
