"""The JSON Schema and the docs say what the validator says."""

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evals_app.assertions import assertion_types, validate_assertions
from tests.workflows.engine.validate.document_errors import faults_of
from tests.workflows.engine.validate.test_faults import BLOCKS, HEAD, SECTIONS, A
from tests.workflows.engine.validate.test_graph import EVERYTHING, LOOP
from workflows_app.engine.parse import parse
from workflows_app.engine.schema.json_schema import document_schema
from workflows_app.engine.schema.reference import renewed

ROOT = Path(__file__).resolve().parents[4]
DOCS = sorted((ROOT / "docs").glob("*.md"))
SHIPPED = ("workflows_app", "evals_app", "runsight_site", "docs", "demo", "examples")
DEMO = sorted(
    path
    for folder in SHIPPED
    for path in (ROOT / folder).rglob("*.y*ml")
    if re.search(r"^blocks:", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def yaml_examples(page: Path) -> list[str]:
    """The documents among a page's YAML examples."""
    blocks = re.findall(r"^```ya?ml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if re.search(r"^blocks:", block, re.MULTILINE)]


EXAMPLES = [
    *(
        pytest.param(text, id=f"{page.name} {n}")
        for page in DOCS
        for n, text in enumerate(yaml_examples(page))
    ),
    *(pytest.param(path.read_text(encoding="utf-8"), id=path.name) for path in DEMO),
    pytest.param(EVERYTHING, id="everything"),
    pytest.param(LOOP, id="loop"),
]


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = document_schema(assertion_types())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_valid_by_validator_and_schema(text: str, validator: Draft202012Validator) -> None:
    assert faults_of(text, check_assertions=validate_assertions) == []
    assert [error.message for error in validator.iter_errors(parse(text).value)] == []


def test_the_page_has_examples() -> None:
    assert len(yaml_examples(ROOT / "docs" / "workflows.md")) >= 7


def test_the_tables_in_the_docs_are_current() -> None:
    page = ROOT / "docs" / "workflows.md"
    text = page.read_text(encoding="utf-8")
    assert renewed(text) == text, "run: python -m workflows_app.engine.schema.reference docs/workflows.md"


# What only the validator can know: names, the graph, the insides of texts.
BEYOND_A_SCHEMA = re.compile(
    r"unknown (block|name|soul|workflow)\b(?! type)|upstream|cycle|already|listed twice|mean the same|no assertions|"
    r"main|Python|^os$|not the id of|cannot contain|no inner block|id of a block|not inside|needs (`when`|a number)|declared are|"
    r"only one|cannot be an exit|both `pass`|unquoted|must be of type|must be inputs|has no exit|Did you mean 'a'|repeats$|they must"
)


@pytest.mark.parametrize(
    "text",
    [
        *(HEAD + text for text, *_, message in BLOCKS if not BEYOND_A_SCHEMA.search(message)),
        *(HEAD + A + text for text, *_, message in SECTIONS if not BEYOND_A_SCHEMA.search(message)),
        HEAD + "  a: {type: llm, soul_ref: s, assertions: [{type: contians, value: x}]}\n",
        HEAD + "  a: {type: llm, soul_ref: s, assertions: [{type: contains}]}\n",
        HEAD + "  a: {type: llm, soul_ref: s, assertions: [{type: cost, threshold: 1, treshold: 2}]}\n",
        "workflow: {name: nothing}\n",
        "blocks: {}\n",
    ],
)
def test_the_schema_refuses_what_is_wrong_in_form(text: str, validator: Draft202012Validator) -> None:
    assert faults_of(text, check_assertions=validate_assertions)
    assert not validator.is_valid(parse(text).value)


def test_the_schema_describes_every_key() -> None:
    def walk(node: Any) -> list[str]:
        if isinstance(node, list):
            return [found for item in node for found in walk(item)]
        if not isinstance(node, dict):
            return []
        missing = [
            key
            for key, inner in node.get("properties", {}).items()
            if isinstance(inner, dict) and "description" not in inner and "enum" not in inner
        ]
        return missing + [found for inner in node.values() for found in walk(inner)]

    assert walk(document_schema(assertion_types())) == []


def test_without_a_catalogue_any_assertion_type_will_do() -> None:
    schema = Draft202012Validator(document_schema())
    assert schema.is_valid(
        {"blocks": {"a": {"type": "llm", "soul_ref": "s", "assertions": [{"type": "new"}]}}}
    )
    assert not schema.is_valid({"blocks": {"a": {"type": "llm", "soul_ref": "s", "assertions": [{}]}}})
