"""Adding a case changes nothing else in the text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals_app.suites.case_text import CannotInsert, insert_case
from workflows_app.engine.parse import parse

CASE = {"id": "new", "inputs": {"q": "a\nb"}, "expected": {"a": [{"type": "contains", "value": "x"}]}}
HEAD = "# top\nblocks:\n  a: {type: code, code: x} # why\n"

TEXTS = {
    "no section": HEAD,
    "no newline at the end": HEAD.rstrip("\n"),
    "comment at the end": HEAD + "\n# the end\n",
    "document end": HEAD + "...\n",
    "threshold only": HEAD + "eval:\n  threshold: 0.5 # half\n\n# about limits\nlimits: {}\n",
    "cases": HEAD + "eval:\n  cases:\n    - id: one # first\n      inputs: {}\n\n    # about nothing\n\nlimits: {}\n",
    "cases, indentless": HEAD + "eval:\n  cases:\n  - id: one\n    inputs: {}\n  threshold: 0.5\n",
    "last is a literal": HEAD + "eval:\n  cases:\n    - id: one\n      description: |\n        # not a comment\n\n        text\n",
    "literal with hash at the end": HEAD + "eval:\n  cases:\n    - id: one\n      description: |\n        x\n        # y\n",
    "kept newlines": HEAD + "eval:\n  cases:\n    - id: one\n      description: |+\n        x\n\nlimits: {}\n",
    "empty section": HEAD + "eval:\nlimits: {}\n",
    "null section": HEAD + "eval: null # soon\nlimits: {}\n",
    "empty mapping": HEAD + "eval: {}\n",
    "empty list": HEAD + "eval:\n  cases: [] # none yet\n  threshold: 0.5\n",
    "empty list over lines": HEAD + "eval:\n  cases: [\n  ]\n",
    "cases without value": HEAD + "eval:\n  cases:\n  threshold: 0.5\n",
    "flow list": HEAD + "eval:\n  cases: [{id: one}]\n",
    "flow list, comma": HEAD + "eval:\n  cases: [{id: one}, # c, d\n  ]\n",
    "flow section": HEAD + "eval: {threshold: 0.5}\n",
    "flow section with cases": HEAD + "eval: {cases: [{id: one}], threshold: 0.5}\n",
    "flow section, empty cases": HEAD + "eval: {cases: []}\n",
    "windows": HEAD.replace("\n", "\r\n") + "eval:\r\n  cases:\r\n    - id: one\r\n",
    "byte order mark": "\ufeff" + HEAD,
    "quoted key": HEAD + '"eval":\n  "cases":\n    - id: one\n',
    "section first": "eval:\n  cases:\n    - id: one\n" + HEAD,
    "far in": HEAD + "eval:\n        cases:\n                -   id: one\n                    inputs: {}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_case_is_added_and_every_line_before_stays(name: str) -> None:
    text = TEXTS[name]
    before = parse(text).value
    changed = insert_case(text, CASE)
    after = parse(changed).value
    assert after["eval"]["cases"][-1] == CASE
    assert after["eval"]["cases"][:-1] == ((before.get("eval") or {}).get("cases") or [])
    kept = [line for line in text.splitlines() if line.strip() and "eval" not in line and "cases" not in line]
    remaining = iter(changed.splitlines())
    assert all(any(line.split("#")[0].rstrip("]}, ") in other for other in remaining) for line in kept)
    comments = [
        part for part in ("# top", "# why", "# half", "# soon", "# none yet", "# c, d") if part in text
    ]
    assert all(comment in changed for comment in comments)


def test_block_style_reads_as_people_write() -> None:
    before = HEAD + "eval:\n  cases:\n    - id: one # first\n      inputs: {}\n"
    after = "\n# about limits\nlimits: {}\n"
    assert insert_case(before + after, {**CASE, "fixtures": {"a": {"k": [1, 2]}}}) == (
        before
        + "    - id: new\n      inputs:\n        q: |-\n          a\n          b\n"
        + "      expected:\n        a:\n          - {type: contains, value: x}\n"
        + "      fixtures:\n        a:\n          k:\n            - 1\n            - 2\n"
        + after
    )


@pytest.mark.parametrize(
    "text", ["{blocks: {}}", "a: [", "", "- 1", HEAD + "eval: 3\n", HEAD + "eval: {cases: 3}\n"]
)
def test_text_that_cannot_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(CannotInsert):
        insert_case(text, CASE)


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-10**6, 10**6) | TEXT | st.sampled_from(["on", "012", "1:30", "2026-01-01", "<<", "=", "~", "| x", "- a", "a: b", " x", "x\n", "\n x\n  y "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(bool), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(value=VALUE, name=st.sampled_from(sorted(TEXTS)))
@settings(max_examples=150, deadline=None)
def test_any_output_survives_as_a_fixture(value: Any, name: str) -> None:
    case = {"id": "new", "fixtures": {"a": value}}
    changed = insert_case(TEXTS[name], case)
    assert parse(changed).value["eval"]["cases"][-1] == case
