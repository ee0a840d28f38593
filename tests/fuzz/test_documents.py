"""Real workflow documents, broken: faults or a definition that everything else can use, soon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from evals_app.assertions import assertion_types, validate_assertions
from tests.fuzz.effort import effort, in_time
from tests.fuzz.mutations import broken, broken_text
from tests.workflows.engine.validate.test_robustness import Plain
from workflows_app.display.run_form import read_inputs, widgets_of
from workflows_app.engine.definition import InvalidDocument, WorkflowDefinition
from workflows_app.engine.schedule import Plan
from workflows_app.engine.schema.json_schema import document_schema
from workflows_app.engine.validate import compile_document
from workflows_app.forms import SAMPLE
from workflows_app.graph.definition import definition_graph
from workflows_app.graph.draw import graph_svg
from workflows_app.graph.layout import layout

DEMO = Path(__file__).parents[2] / "evals_app/demo/workflows"
TEXTS = [SAMPLE, *(path.read_text() for path in sorted(DEMO.glob("*.yaml")))]
TREES = [yaml.safe_load(text) for text in TEXTS]


def judge(text: str | bytes) -> None:
    """Only faults with a sentence, or a definition that can be drawn, planned and asked for its inputs."""
    with in_time():
        try:
            definition = compile_document(text, check_assertions=validate_assertions)
        except InvalidDocument as invalid:
            assert invalid.faults
            for fault in invalid.faults:
                assert fault.message
                assert fault.line is None or fault.line >= 1
                json.dumps(fault.to_dict()).encode()
        else:
            use(definition)


def use(definition: WorkflowDefinition) -> None:
    Plan(definition)
    graph_svg(layout(*definition_graph(definition, lambda node: node)))
    widgets_of(definition)
    read_inputs(definition, {})


@effort(30)
@given(st.sampled_from(TREES).flatmap(lambda tree: broken(tree, deepest=90)))
def test_broken_structure(tree: Any) -> None:
    judge(yaml.dump(tree, Dumper=Plain, sort_keys=False, allow_unicode=True))


@effort(30)
@given(st.sampled_from(TEXTS).flatmap(broken_text))
def test_broken_text(text: str) -> None:
    judge(text)


@effort(20)
@given(st.sampled_from(TEXTS), st.data())
def test_broken_bytes(text: str, data: st.DataObject) -> None:
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    judge(bytes(raw))


def test_the_documents_that_are_broken_were_whole() -> None:
    for text in TEXTS:
        use(compile_document(text, check_assertions=validate_assertions))
    assert document_schema(assertion_types())
