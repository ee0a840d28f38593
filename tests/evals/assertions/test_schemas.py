"""Schemas: our time limits never change what jsonschema would say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evals_app.assertions.base import BadOption
from evals_app.assertions.limits import Deadline, PatternBudget
from evals_app.assertions.matching.json_schemas import load_schema
from evals_app.assertions.options import JsonValue

NAMES = st.sampled_from(["a", "b", "^a"])
GOOD = st.recursive(
    st.booleans()
    | st.sampled_from(
        [
            {"type": "object"},
            {"type": ["string", "null"]},
            {"enum": [1, "a", True]},
            {"const": 1},
            {"minimum": 1},
            {"pattern": "^a"},
            {"maxLength": 1},
            {"uniqueItems": True},
            {"required": ["a"]},
            {"multipleOf": 0.5},
        ]
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
        },
    ),
    max_leaves=6,
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from([1.0, 0.5, "a", "b", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(GOOD, st.lists(DATA, min_size=1, max_size=4))
def test_verdicts_are_those_of_the_library(schema, values):
    compiled, library = load_schema(JsonValue(schema).text), Draft202012Validator(schema)
    for value in values:
        error = compiled.first_error(value, PatternBudget(), Deadline("The check"))
        assert (error is None) is library.is_valid(value)


@pytest.mark.parametrize(
    "schema", [{"type": "objekt"}, {"required": "a"}, {"minLength": -1}, {"allOf": []}, {"items": 5}]
)
def test_invalid_schema_is_refused(schema):
    with pytest.raises(BadOption, match="not a valid JSON Schema"):
        load_schema(JsonValue(schema).text)


@pytest.mark.parametrize("number", [3, 4, 6, 7])
def test_older_drafts_are_known_by_their_name(number):
    draft = f"http://json-schema.org/draft-0{number}/schema#"
    compiled = load_schema(
        JsonValue({"$schema": draft, "type": "object", "properties": {"a": {"type": "string"}}}).text
    )
    budget, deadline = PatternBudget(), Deadline("The check")
    assert compiled.first_error({"a": "x"}, budget, deadline) is None
    assert "$.a" in (compiled.first_error({"a": 1}, budget, deadline) or "")
