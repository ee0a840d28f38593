"""Schemas: our time limits never change what jsonschema would say."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evals_app.assertions import AssertionContext, run_assertion, validate_assertions
from evals_app.assertions.base import BadOption
from evals_app.assertions.limits import CannotCheck, Deadline, PatternBudget
from evals_app.assertions.matching.json_schemas import load_schema
from evals_app.assertions.options import JsonValue
from tests.timing import PROMPTLY

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


DRAFTS = [f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7)] + [
    f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")
]
MANY = list(range(40_000))


def verdict(schema, value):
    result = run_assertion({"type": "is-json", "value": schema}, AssertionContext(json.dumps(value)))
    assert not result.error, result.reason
    return result.passed


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_schemas_of_the_drafts_can_be_referred_to(draft):
    assert verdict({"$ref": draft}, {"type": "object"})
    assert not verdict({"$ref": draft}, {"type": 5})


@pytest.mark.parametrize(
    ("patterns", "good", "bad"),
    [
        ([r"^(a)\1$", r"^(b)\1$"], {"aa": 1, "bb": 2}, {"ab": 1}),
        (["(?i)^x", "(?i)^y"], {"X": 1, "Y": 2}, {"z": 1}),
        ([f"^a{i}$" for i in range(700)], {"a0": 1, "a699": 2}, {"a700": 1}),
    ],
)
def test_patterns_of_names_do_not_change_each_other(patterns, good, bad):
    schema = {"patternProperties": {pattern: {} for pattern in patterns}, "additionalProperties": False}
    assert verdict(schema, good)
    assert not verdict(schema, bad)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"id": {"type": "integer"}}, "$ref": "#/nope"}, "[0].value.$ref"),
        ({"$id": "http://example.com/a", "$ref": "b"}, "[0].value.$ref"),
        ({"properties": {"a": {"$ref": "#nowhere"}}}, "[0].value.properties.a.$ref"),
        ({"properties": {"const": {"pattern": "("}}}, "[0].value.properties.const.pattern"),
        ({"$defs": {"enum": {"patternProperties": {"(": {}}}}}, "[0].value.$defs.enum.patternProperties"),
    ],
)
def test_the_name_of_a_property_switches_no_check_off(schema, path):
    (problem,) = validate_assertions([{"type": "is-json", "value": schema}])
    assert problem.path == path


def test_references_by_id_and_anchor_are_found():
    by_id = {"$id": "http://example.com/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "string"}}}
    assert verdict(by_id, "x")
    assert not verdict(by_id, 1)
    by_anchor = {"$ref": "#b", "$defs": {"b": {"$anchor": "b", "type": "string"}}}
    assert verdict(by_anchor, "x")
    assert not verdict(by_anchor, 1)


def test_multiples_are_exact_for_integers_beyond_a_float():
    assert verdict({"multipleOf": 0.5}, 10**400)
    assert not verdict({"multipleOf": 1.5}, 10**400)


def test_patterns_may_name_unicode_properties():
    assert verdict({"pattern": r"^[\p{Letter}\d]+\P{L}$"}, "ä1-")
    assert not verdict({"pattern": r"^\p{Letter}+$"}, "1")
    assert validate_assertions([{"type": "is-json", "value": {"pattern": r"\p{Nothing}"}}])
    assert validate_assertions([{"type": "regex", "value": r"\p{Letter}"}])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"contains": {"type": "integer"}, "unevaluatedItems": False}, MANY),
        ({"allOf": [{"contains": {}}], "unevaluatedItems": False}, MANY),
        ({"patternProperties": {"^k": {}}, "unevaluatedProperties": False}, {f"k{i}": 1 for i in MANY}),
    ],
)
def test_unevaluated_parts_are_found_in_linear_time(schema, value):
    started = time.perf_counter()
    assert verdict(schema, value)
    assert time.perf_counter() - started < PROMPTLY


def test_deadline_holds_where_the_schema_of_the_items_is_empty():
    with pytest.raises(CannotCheck, match="took longer"):
        load_schema('{"items": {}}').first_error(MANY, PatternBudget(), Deadline("The check", 0.01))


def test_part_of_another_draft_keeps_the_limits():
    schema = {"properties": {"a": {"$schema": DRAFTS[2], "pattern": "(a|aa)+$"}}}
    result = run_assertion(
        {"type": "is-json", "value": schema}, AssertionContext(json.dumps({"a": "a" * 5_000 + "!"}))
    )
    assert "was stopped after" in result.reason


def test_deep_constant_is_compared():
    deep = json.loads("[" * 390 + "]" * 390)
    assert verdict({"const": deep}, deep)
