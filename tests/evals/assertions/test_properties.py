"""What holds for every config and every text."""

from __future__ import annotations

import datetime
import json
import math
import random
from dataclasses import asdict

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evals_app.assertions import (
    AssertionContext,
    AssertionsResult,
    GradingResult,
    assertion_types,
    run_assertion,
    run_assertions_sync,
    validate_assertions,
)
from evals_app.assertions.matching.json_documents import NotJson, are_equal, parse_document

TYPES = [entry["type"] for entry in assertion_types()]
EXAMPLES = {entry["type"]: entry["example"] for entry in assertion_types()}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.binary(max_size=5)
    | st.sampled_from(["json_path:$.a", "(", "a+", "object", 10**400, datetime.datetime(2024, 1, 1)])
)
YAML_VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(SCALARS.filter(lambda k: k == k), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["value", "threshold", "weight", "metric", "transform", "min", "vlaue"])
TYPE_NAMES = st.sampled_from([*TYPES, *(f"not-{name}" for name in TYPES)])
CONFIGS = (
    st.builds(
        lambda type_, rest: {"type": type_, **rest},
        TYPE_NAMES,
        st.dictionaries(KEYS, YAML_VALUES, max_size=4),
    )
    | st.builds(
        lambda type_, rest: {**EXAMPLES[type_.removeprefix("not-")], "type": type_, **rest},
        TYPE_NAMES,
        st.dictionaries(KEYS, YAML_VALUES, max_size=1),
    )
    | YAML_VALUES
)
OUTPUTS = (
    st.text(max_size=60)
    | YAML_VALUES
    | YAML_VALUES.map(repr)
    | st.sampled_from(['{"a": "b"}', "[1, 2]", "\ud800", "\x00"])
)
CONTEXTS = st.builds(
    AssertionContext,
    output=OUTPUTS,
    cost_usd=st.none() | st.floats() | st.integers(),
    latency_ms=st.none() | st.floats() | st.integers(),
)
VALID = st.sampled_from(
    [
        *(EXAMPLES[type_] for type_ in TYPES),
        {"type": "rouge-n", "value": "a b c"},
        {"type": "bleu", "value": "a b c"},
        {"type": "levenshtein", "value": "abc"},
        {"type": "contains", "value": "a", "weight": 2, "metric": "m"},
        {"type": "contains", "value": "b", "weight": 0.1, "metric": "m"},
        {"type": "regex", "value": "[ab]+", "weight": 0},
        {"type": "contains", "value": "("},
        {"type": "regex", "value": "("},
    ]
)
TEXTS = st.text(alphabet='abc {}[]":1,', max_size=30)


@settings(max_examples=300)
@given(CONFIGS, CONTEXTS)
def test_any_config_and_any_output_give_a_result(config, context):
    problems = validate_assertions([config])
    result = run_assertion(config, context)
    assert 0.0 <= result.score <= 1.0
    assert result.reason
    assert 0.0 <= result.weight < math.inf
    if result.error:
        assert not result.passed
        assert result.score == 0.0
    if problems:
        assert result.error
    json.dumps(result.to_dict(), allow_nan=False).encode()
    json.dumps([asdict(problem) for problem in problems])


@given(st.text(max_size=80))
def test_any_yaml_is_validated_and_run(text):
    try:
        configs = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return
    validate_assertions(configs)
    run_assertions_sync(configs, AssertionContext(output=text)).to_dict()


@given(VALID, TEXTS, st.floats(0, 1), st.floats(0, 1000))
def test_negation_is_an_involution_on_verdicts(config, output, cost, latency):
    context = AssertionContext(output=output, cost_usd=cost, latency_ms=latency)
    plain = run_assertion(config, context)
    negated = run_assertion({**config, "type": f"not-{config['type']}"}, context)
    assert plain.error is negated.error
    assert plain.measured == negated.measured
    if not plain.error:
        assert negated.passed is (not plain.passed)
        assert negated.score == 1.0 - plain.score


@given(st.lists(VALID, max_size=8), TEXTS, st.randoms(use_true_random=False))
def test_order_does_not_change_the_aggregate(configs, output, chooser: random.Random):
    context = AssertionContext(output=output, cost_usd=0.01, latency_ms=5)
    shuffled = chooser.sample(configs, len(configs))
    one, other = run_assertions_sync(configs, context), run_assertions_sync(shuffled, context)
    assert one.aggregate_score == other.aggregate_score
    assert one.named_scores == other.named_scores
    assert one.passed() is other.passed()
    assert 0.0 <= one.aggregate_score <= 1.0


RESULTS = st.builds(
    GradingResult,
    passed=st.booleans(),
    score=st.floats(0, 1),
    reason=st.just("."),
    weight=st.floats(0, allow_infinity=False, allow_nan=False),
    metric=st.none() | st.sampled_from(["m", "n"]),
)


@given(st.lists(RESULTS, max_size=6), st.randoms(use_true_random=False))
def test_aggregates_are_bounded_and_know_no_order(results, chooser: random.Random):
    one, other = AssertionsResult(results), AssertionsResult(chooser.sample(results, len(results)))
    assert one.aggregate_score == other.aggregate_score
    assert 0.0 <= one.aggregate_score <= 1.0
    assert one.named_scores == other.named_scores
    assert all(0.0 <= score <= 1.0 for score in one.named_scores.values())
    assert math.isfinite(one.total_score)
    assert math.isfinite(one.total_weight)


@given(st.lists(VALID, max_size=6), TEXTS, st.integers(0, 6))
def test_adding_a_failing_assertion_never_turns_a_block_green(configs, output, place):
    context = AssertionContext(output=output, cost_usd=0.01, latency_ms=5)
    failing = {"type": "contains", "value": "never in there"}
    longer = [*configs[:place], failing, *configs[place:]]
    before, after = run_assertions_sync(configs, context), run_assertions_sync(longer, context)
    assert not after.passed()
    assert after.aggregate_score <= before.aggregate_score


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, -0.0, 1.5, "", "1", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=8,
)


def _canonical(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value if not isinstance(value, bool) else ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value))
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return {key: _canonical(item) for key, item in value.items()}


@given(JSON_VALUES, JSON_VALUES)
def test_json_equality_tells_bools_from_numbers(one, other):
    assert are_equal(one, other) is (_canonical(one) == _canonical(other))
    assert are_equal(one, json.loads(json.dumps(one)))


@given(JSON_VALUES)
def test_equals_accepts_its_own_json_text(value):
    # A text is compared as text first, so only its JSON spelling is JSON.
    for written in (json.dumps(value) if isinstance(value, str) else value, json.dumps(value)):
        result = run_assertion(
            {"type": "equals", "value": written}, AssertionContext(json.dumps(value, indent=1))
        )
        assert result.passed


@given(st.text(alphabet='{}[]",:1.e-+ tfalsenurNI\\', max_size=20))
def test_strict_json_is_what_the_standard_library_takes_without_constants(text):
    try:
        expected = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        expected = NotJson
    try:
        found = parse_document(text)
    except NotJson:
        found = NotJson
    assert found == expected
