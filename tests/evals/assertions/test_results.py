"""How single results add up for a block."""

from __future__ import annotations

import json
import math
import sys

import pytest

from evals_app.assertions import (
    AssertionContext,
    AssertionsResult,
    GradingResult,
    run_assertion,
    run_assertions_sync,
)

OK = {"type": "contains", "value": "o"}
BAD = {"type": "contains", "value": "zzz"}


def run(configs, output="hello world", **measures):
    return run_assertions_sync(configs, AssertionContext(output=output, **measures))


def test_results_come_in_the_order_written():
    result = run([BAD, OK, {"type": "nonsense"}, OK])
    assert [one.passed for one in result.results] == [False, True, False, True]


def test_without_threshold_every_single_one_must_pass():
    assert run([OK, OK]).passed()
    assert not run([OK, BAD]).passed()


def test_with_threshold_the_aggregate_decides():
    result = run([OK, OK, OK, BAD])
    assert result.aggregate_score == 0.75
    assert result.passed(0.75)
    assert not result.passed(0.76)


def test_weights_weigh():
    result = run([{**OK, "weight": 3}, {**BAD, "weight": "1"}])
    assert (result.total_score, result.total_weight, result.aggregate_score) == (3.0, 4.0, 0.75)


def test_weight_defaults_to_one_also_when_null():
    assert [one.weight for one in run([OK, {**OK, "weight": None}]).results] == [1.0, 1.0]


def test_weight_zero_counts_for_passing_but_not_for_the_score():
    result = run([OK, {**BAD, "weight": 0}])
    assert result.aggregate_score == 1.0
    assert not result.passed()


def test_nothing_with_weight_scores_zero():
    assert run([{**OK, "weight": 0}]).aggregate_score == 0.0
    assert AssertionsResult().aggregate_score == 0.0


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, True, "heavy", [1], -0.001])
def test_bad_weight_is_an_error_that_counts_as_one(weight):
    result = run([OK, {**OK, "weight": weight}])
    assert result.results[1].error
    assert result.results[1].weight == 1.0
    assert result.aggregate_score == 0.5


@pytest.mark.parametrize("weight", [sys.float_info.max, 5e-324, 1e200])
def test_extreme_weights_neither_overflow_nor_vanish(weight):
    result = run(
        [
            {**OK, "weight": weight},
            {**OK, "weight": weight},
            {**BAD, "weight": weight},
            {**BAD, "weight": weight},
        ]
    )
    assert result.aggregate_score == pytest.approx(0.5)
    assert math.isfinite(result.total_weight)
    assert math.isfinite(result.total_score)


def test_metric_puts_the_score_into_named_scores():
    bleu = {"type": "bleu", "value": "hello there", "metric": "closeness"}
    result = run([OK, bleu])
    assert result.named_scores == {"closeness": result.results[1].score}


def test_one_metric_for_several_is_their_weighted_mean():
    result = run([{**OK, "metric": "m", "weight": 3}, {**BAD, "metric": "m"}, {**OK, "metric": "n"}])
    assert result.named_scores == {"m": 0.75, "n": 1.0}


def test_metric_without_weight_is_still_reported():
    assert run([{**OK, "metric": "m", "weight": 0}]).named_scores == {"m": 1.0}


def test_error_counts_as_zero_in_its_metric():
    assert run([{**OK, "metric": "m"}, {**OK, "metric": "m", "value": ""}]).named_scores == {"m": 0.5}


def test_negated_score_is_one_minus_the_score():
    plain = run_assertion({"type": "bleu", "value": "hello there"}, AssertionContext("hello world"))
    negated = run_assertion({"type": "not-bleu", "value": "hello there"}, AssertionContext("hello world"))
    assert 0 < plain.score < 1
    assert negated.score == 1.0 - plain.score
    assert negated.passed is not plain.passed


def test_only_three_fields_of_a_result_are_required():
    result = GradingResult(passed=True, score=1.0, reason="fine")
    assert (result.type, result.weight, result.metric, result.error, result.measured) == (
        "",
        1.0,
        None,
        False,
        None,
    )


def test_add_result_takes_its_weight():
    total = AssertionsResult()
    total.add_result(GradingResult(passed=True, score=1.0, reason="", metric="m"), weight=3)
    total.add_result(GradingResult(passed=False, score=0.0, reason=""))
    total.add_result(GradingResult(passed=False, score=0.0, reason=""), weight=-5)
    assert [one.weight for one in total.results] == [3.0, 1.0, 1.0]
    assert total.aggregate_score == 0.6
    assert total.named_scores == {"m": 1.0}


def test_to_dict_is_json_and_numbers_the_assertions():
    data = run([OK, {**BAD, "metric": "m"}, {"type": "word-count", "value": 2}]).to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert [one["index"] for one in data["assertions"]] == [0, 1, 2]
    assert data["assertions"][2] == {
        "type": "word-count",
        "passed": True,
        "score": 1.0,
        "reason": "Output has 2 words, as wanted.",
        "weight": 1.0,
        "metric": None,
        "error": False,
        "measured": 2,
        "index": 2,
    }
    assert data["named_scores"] == {"m": 0.0}


@pytest.mark.parametrize(
    ("config", "measured"),
    [
        ({"type": "levenshtein", "value": "hello"}, 6),
        ({"type": "word-count", "value": 2}, 2),
        ({"type": "cost", "threshold": 1}, 0.25),
        ({"type": "not-latency", "threshold": 1}, 812.0),
        ({"type": "rouge-n", "value": "hello"}, pytest.approx(2 / 3)),
        ({"type": "contains", "value": "x"}, None),
    ],
)
def test_the_number_behind_a_verdict_is_reported(config, measured):
    assert run([config], cost_usd=0.25, latency_ms=812.0).results[0].measured == measured


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ({"type": "cost", "threshold": 0.05}, ["$0.25", "$0.05"]),
        ({"type": "latency", "threshold": 500}, ["812 ms", "500 ms"]),
        ({"type": "word-count", "value": {"min": 10}}, ["2 words", "at least 10"]),
        ({"type": "levenshtein", "value": "hello"}, ["6", "5"]),
        ({"type": "contains-all", "value": ["o", "x", "y"]}, ["2 of 3", "'x'"]),
        ({"type": "is-json", "value": {}}, ["line 1 column 1"]),
        ({"type": "not-contains", "value": "hello"}, ["contains 'hello'", "not-contains"]),
        ({"type": "bleu", "value": "some other text"}, ["0.000", "0.5"]),
    ],
)
def test_failing_reason_names_the_numbers(config, parts):
    result = run([config], cost_usd=0.25, latency_ms=812.0).results[0]
    assert not result.passed
    assert all(part in result.reason for part in parts), result.reason


@pytest.mark.parametrize(
    ("config", "output", "said"),
    [
        ({"type": "word-count", "value": {"min": 1}}, "hello", "Output has 1 word, as wanted."),
        ({"type": "word-count", "value": 1}, "a b", "Output has 2 words; exactly 1 is wanted."),
        ({"type": "word-count", "value": {"min": 2}}, "a", "Output has 1 word; at least 2 are wanted."),
        ({"type": "contains-all", "value": ["a"]}, "a", "Output contains 'a'."),
        ({"type": "contains-all", "value": ["a"]}, "b", "Output does not contain 'a'."),
        ({"type": "contains-any", "value": ["a"]}, "b", "Output does not contain 'a'."),
        ({"type": "contains-all", "value": ["a", "b"]}, "ab", "Output contains all 2 values."),
    ],
)
def test_one_is_not_counted_as_many(config, output, said):
    assert run_assertion(config, AssertionContext(output)).reason == said


def test_reasons_shorten_long_texts():
    for type_ in ("equals", "contains", "starts-with", "regex", "contains-any", "levenshtein", "rouge-n"):
        result = run_assertion({"type": type_, "value": "long" * 2_000}, AssertionContext("other" * 50_000))
        assert len(result.reason) < 300, type_
    schema = {"type": "object", "properties": {"x" * 5_000: {}}, "required": ["x" * 5_000]}
    assert len(run_assertion({"type": "is-json", "value": schema}, AssertionContext("{}")).reason) < 300


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"type": "cost", "threshold": 0.25}, "Cost is $0.250000003, above $0.25."),
        ({"type": "latency", "threshold": 812}, "Latency is 812.0000000001 ms, above 812.0 ms."),
    ],
)
def test_measurement_that_rounds_to_the_threshold_is_reported_apart(config, said):
    result = run([config], cost_usd=0.250000003, latency_ms=812.0000000001).results[0]
    assert (result.passed, result.reason) == (False, said)


def test_small_cost_is_spelt_without_an_exponent():
    assert run([{"type": "cost", "threshold": 0.01}], cost_usd=8.4e-05).results[0].reason == (
        "Cost is $0.000084, within $0.01."
    )


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"type": "contains-all", "value": ["a", ""]}, "value[1]: is empty"),
        ({"type": "is-json", "value": {"type": "objekt"}}, "value.type: is not a valid JSON Schema"),
        ({"type": "word-count", "value": {"min": "x"}}, "value.min: must be a number"),
        ({"type": "contains", "value": ""}, "Value is empty"),
    ],
)
def test_configuration_error_says_where_in_the_value(config, said):
    assert f"Configuration error: {said}" in run([config]).results[0].reason


def test_score_that_rounds_to_the_threshold_is_reported_apart():
    reference = " ".join(f"w{i}" for i in range(3001))
    output = " ".join(f"w{i}" for i in range(1499))
    result = run_assertion(
        {"type": "rouge-n", "value": reference, "threshold": 0.6665}, AssertionContext(output)
    )
    shown = float(result.reason.split()[2].rstrip(","))
    assert (shown >= 0.6665) is result.passed
