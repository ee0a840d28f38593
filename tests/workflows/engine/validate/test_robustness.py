"""No text makes the validator raise anything but InvalidDocument, nor take long."""

import time
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workflows.engine.validate.document_errors import faults_of
from workflows_app.engine.parse import ParsedDocument
from workflows_app.engine.schema.block_keys import BLOCK_KEYS, COMMON_KEYS
from workflows_app.engine.schema.document_keys import DOCUMENT
from workflows_app.engine.validate import validate

names = st.sampled_from(["a", "b", "c", "g", "inputs", "pass", "default", "x y", "", "previous_round"])
words = st.sampled_from(
    [
        *BLOCK_KEYS,
        "linear",
        "s",
        "{{ a }}",
        "{{ inputs.x",
        "{{ b.c | d }}",
        "a.output",
        "blocks.b.json.x",
        "round",
        "equals",
    ]
)
leaves = (
    names
    | words
    | st.none()
    | st.booleans()
    | st.integers(-2, 99)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
)
keys = st.sampled_from(
    [
        "from",
        "to",
        "id",
        "exit",
        "when",
        "goto",
        "default",
        "eval_key",
        "operator",
        "value",
        "conditions",
        "name",
        "enabled",
    ]
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | names, inner, max_size=4),
    max_leaves=8,
)
block_keys = st.sampled_from([*COMMON_KEYS, *{key for table in BLOCK_KEYS.values() for key in table}])
some_block = st.dictionaries(block_keys, values, max_size=6)
typed_block = st.builds(
    lambda block, kind: {**block, "type": kind}, some_block, st.sampled_from([*BLOCK_KEYS, "linear"])
)
documents = st.builds(
    lambda rest, blocks: {**rest, "blocks": blocks},
    st.dictionaries(st.sampled_from(list(DOCUMENT.keys)), values, max_size=4),
    st.dictionaries(names, typed_block | some_block | leaves, max_size=5),
)


class Plain(yaml.SafeDumper):
    """Writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@given(st.text() | st.text(alphabet="ab:-[]{}&*!|>'\"#%? \n\t,~<=@`0.", max_size=60) | st.binary(max_size=60))
@settings(max_examples=250, deadline=2000)
def test_any_text_gives_faults_and_nothing_else(text: str | bytes) -> None:
    for fault in faults_of(text):
        assert fault.message
        assert fault.line is None or fault.line >= 1


@given(documents)
@settings(
    max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
def test_any_structure_gives_a_definition_or_faults_with_lines(document: dict[str, Any]) -> None:
    text = yaml.dump(document, Dumper=Plain, sort_keys=False)
    for fault in faults_of(text, known_souls=["s"], known_workflows=["w"]):
        assert fault.message
        assert fault.line is not None
        assert 1 <= fault.line <= text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "blocks:\n"
        + "".join(f"  b{n}: {{type: llm, soul_ref: s, depends: b{n + 1}}}\n" for n in range(1999)),
        "blocks:\n"
        + "".join(f"  b{n}: {{type: llm, soul_ref: s, depends: b{n ^ 1}}}\n" for n in range(2000)),
        "blocks:\n  a: {type: llm, soul_ref: s, prompt: '" + "{{ x }} " * 100_000 + "'}\n",
        "blocks:\n  a: {type: llm, soul_ref: s, prompt: '" + "{{ " * 60_000 + "'}\n",
        "blocks:\n" + "".join(f"  l{n}: {{type: loop, inner_block_refs: [l{n + 1}]}}\n" for n in range(1500)),
        "blocks: {a: {type: llm, soul_ref: s, " + ", ".join(f"k{n}: 1" for n in range(50_000)) + "}}\n",
    ],
    ids=["long chain", "many cycles", "many bad paths", "many openings", "deep loops", "many unknown keys"],
)
def test_large_faulty_documents_are_checked_quickly(text: str) -> None:
    started = time.perf_counter()
    assert faults_of(text)
    assert time.perf_counter() - started < 5


def test_a_document_nobody_parsed_is_not_whole() -> None:
    document = ParsedDocument()
    document.is_whole = False
    assert validate(document) == (None, [])
