"""docs/assertions.md says what the engine does."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from evals_app.assertions import assertion_types, validate_assertions
from evals_app.assertions.reference import render

PAGE = Path(__file__).resolve().parents[3] / "docs" / "assertions.md"


def test_page_is_current():
    assert PAGE.read_text("utf-8") == render(), (
        "run: python -m evals_app.assertions.reference > docs/assertions.md"
    )


def test_every_type_has_a_section():
    headings = re.findall(r"^### (.+)$", render(), re.MULTILINE)
    assert sorted(headings) == sorted(entry["type"] for entry in assertion_types())


def test_every_example_on_the_page_is_valid():
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", render(), re.DOTALL)]
    assert len(examples) == 16
    for example in examples:
        assertions = example if isinstance(example, list) else example["blocks"]["analyze"]["assertions"]
        assert validate_assertions(assertions) == []
