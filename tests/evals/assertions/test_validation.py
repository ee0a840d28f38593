"""Everything that can be found before running is found, with its place and a sentence."""

from __future__ import annotations

import datetime
import math

import pytest

from evals_app.assertions import AssertionContext, run_assertion, validate_assertions

BAD = [
    ("nonsense", "", "map with a type"),
    (None, "", "map with a type"),
    ({}, ".type", "type is missing"),
    ({"type": 5}, ".type", "must be text"),
    ({"type": "contians", "value": "x"}, ".type", "Did you mean 'contains'?"),
    ({"type": "not-contians", "value": "x"}, ".type", "Did you mean 'not-contains'?"),
    ({"type": "Contains_All", "value": "x"}, ".type", "Did you mean 'contains-all'?"),
    ({"type": "not-not-contains", "value": "x"}, ".type", "unknown assertion type"),
    ({"type": "zzzzzzzz", "value": "x"}, ".type", "Known types are"),
    ({"type": "contains", "value": "y", "vlaue": "x"}, ".vlaue", "Did you mean 'value'?"),
    ({"type": "contains", "value": "x", "wieght": 2}, ".wieght", "Did you mean 'weight'?"),
    ({"type": "contains", "value": "x", 7: 1}, ".7", "unknown key"),
    ({"type": "cost", "threshold": 1, "value": 1}, ".value", "takes no value"),
    ({"type": "contains"}, ".value", "value is missing"),
    ({"type": "contains", "value": None}, ".value", "value is missing"),
    ({"type": "equals"}, ".value", "value is missing"),
    ({"type": "contains", "value": ""}, ".value", "is empty"),
    ({"type": "contains", "value": {"a": 1}}, ".value", "must be text, not a map"),
    ({"type": "contains", "value": datetime.date(2024, 1, 1)}, ".value", "must be text, not a date"),
    ({"type": "contains", "value": math.nan}, ".value", "no JSON form"),
    ({"type": "equals", "value": {"d": datetime.date(2024, 1, 1)}}, ".value", "no JSON form"),
    ({"type": "contains-any", "value": ["a", None]}, ".value[1]", "must be text, not null"),
    ({"type": "contains-all", "value": ["a", "b", ""]}, ".value[2]", "is empty"),
    ({"type": "regex", "value": "(a"}, ".value", "does not compile"),
    ({"type": "regex", "value": "a" * 30_000}, ".value", "longer than 10,000"),
    ({"type": "regex", "value": "(" * 5_000 + ")" * 5_000}, ".value", "too complicated"),
    ({"type": "word-count", "value": {"min": 5, "max": 3}}, ".value", "min 5 is above max 3"),
    ({"type": "word-count", "value": {"min": "few"}}, ".value.min", "must be a number"),
    ({"type": "word-count", "value": {"mni": 1}}, ".value.mni", "takes min and max"),
    ({"type": "is-json", "value": {"type": "objekt"}}, ".value.type", "not a valid JSON Schema"),
    (
        {"type": "is-json", "value": {"properties": {"a": {"minimum": "x"}}}},
        ".value.properties.a.minimum",
        "not a valid",
    ),
    (
        {"type": "is-json", "value": {"properties": {"a": {"pattern": "("}}}},
        ".value.properties.a.pattern",
        "compile",
    ),
    ({"type": "is-json", "value": {"patternProperties": {"(": {}}}}, ".value.patternProperties", "compile"),
    ({"type": "is-json", "value": {"$ref": "#/$defs/missing"}}, ".value.$ref", "points to nothing"),
    (
        {"type": "is-json", "value": {"items": {"$ref": "file:///etc/passwd"}}},
        ".value.items.$ref",
        "never fetched",
    ),
    ({"type": "is-json", "value": {"$schema": "http://x/y"}}, ".value.$schema", "no known draft"),
    ({"type": "contains-json", "value": "a schema"}, ".value", "must be a JSON Schema"),
    ({"type": "contains", "value": "x", "transform": "json_path:$["}, ".transform", "not a JSON path"),
    ({"type": "contains", "value": "x", "transform": "lower"}, ".transform", "only transform"),
    ({"type": "contains", "value": "x", "weight": -1}, ".weight", "must be 0 or more"),
    ({"type": "contains", "value": "x", "weight": math.inf}, ".weight", "finite"),
    ({"type": "contains", "value": "x", "weight": 10**400}, ".weight", "finite"),
    ({"type": "contains", "value": "x", "weight": True}, ".weight", "must be a number, not true"),
    ({"type": "contains", "value": "x", "metric": 5}, ".metric", "must be a name"),
    ({"type": "contains", "value": "x", "metric": " "}, ".metric", "is empty"),
    ({"type": "contains", "value": "x", "metric": "a\x00b"}, ".metric", "cannot be shown"),
    ({"type": "cost"}, ".threshold", "threshold is missing"),
    ({"type": "cost", "threshold": None}, ".threshold", "threshold is missing"),
    ({"type": "latency", "threshold": "1_000"}, ".threshold", "must be a number"),
    ({"type": "levenshtein", "value": "x", "threshold": "nan"}, ".threshold", "must be a number"),
    ({"type": "rouge-n", "value": "x", "threshold": 75}, ".threshold", "must be 1 or less"),
    ({"type": "bleu", "value": "?!"}, ".value", "no words"),
]


@pytest.mark.parametrize(("config", "path", "said"), BAD)
def test_problem_has_its_place_and_a_sentence(config, path, said):
    problems = validate_assertions([{"type": "is-json"}, config])
    assert [problem.path for problem in problems] == [f"[1]{path}"]
    assert said in problems[0].message
    assert problems[0].message.endswith((".", "?"))


@pytest.mark.parametrize(("config", "path", "said"), BAD)
@pytest.mark.parametrize("negated", [False, True])
def test_what_validation_refuses_never_passes(config, path, said, negated):
    if negated and isinstance(config, dict) and isinstance(config.get("type"), str):
        config = {**config, "type": f"not-{config['type']}"}
    result = run_assertion(config, AssertionContext(output='{"x": 1}', cost_usd=0, latency_ms=0))
    assert (result.passed, result.score, result.error) == (False, 0.0, True)


def test_all_problems_are_found_at_once():
    problems = validate_assertions(
        [{"type": "regex", "value": "(", "weight": -1, "wat": 1}, {"type": "contians"}]
    )
    assert sorted(problem.path for problem in problems) == ["[0].value", "[0].wat", "[0].weight", "[1].type"]


@pytest.mark.parametrize("configs", [None, [], ()])
def test_no_assertions_are_fine(configs):
    assert validate_assertions(configs) == []


@pytest.mark.parametrize("configs", [{"type": "contains"}, "contains", 5, True])
def test_assertions_must_be_a_list(configs):
    (problem,) = validate_assertions(configs)
    assert problem.path == ""
    assert "must be a list" in problem.message


@pytest.mark.parametrize(
    "config",
    [
        {
            "type": "contains",
            "value": "x",
            "weight": None,
            "threshold": None,
            "transform": None,
            "metric": None,
        },
        {"type": "cost", "threshold": "0.5", "value": None},
        {"type": "is-json", "value": True},
        {
            "type": "is-json",
            "value": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        },
        {"type": "is-json", "value": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}},
        {"type": "is-json", "value": {"enum": [{"pattern": "("}], "default": {"$ref": "nowhere"}}},
        {"type": "equals", "value": None},
        {"type": "regex", "value": "[[a]&&b--c]"},
        {"type": "contains", "value": 5, "weight": 0},
    ],
)
def test_what_is_legal_is_not_refused(config):
    assert validate_assertions([config]) == []


@pytest.mark.parametrize("config", [{"threshold": 1}, {"threshold": "0.5"}, {"metric": ""}])
@pytest.mark.parametrize("type_", ["contains", "not-contains"])
def test_threshold_without_use_and_empty_metric_change_nothing(type_, config):
    plain = {"type": type_, "value": "x"}
    assert validate_assertions([{**plain, **config}]) == []
    context = AssertionContext("xyz")
    assert run_assertion({**plain, **config}, context) == run_assertion(plain, context)
