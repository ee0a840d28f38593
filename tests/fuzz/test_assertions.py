"""Assertion configs against outputs: always a verdict, in bounds, soon; and `not-` only ever turns one."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evals_app.assertion_yaml import read_assertions, write_assertions
from evals_app.assertions import (
    AssertionContext,
    GradingResult,
    assertion_types,
    compile_assertions,
    run_assertion,
    run_assertions_sync,
    validate_assertions,
)
from tests.fuzz.effort import effort, in_time
from tests.fuzz.mutations import broken, broken_text, keys, nested, scalars, texts, values
from workflows_app.engine.values.outputs import storable

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"pattern": "^x+$"}}, "b": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "number", "multipleOf": 0.1, "minimum": 0}},
    "required": ["a"],
}
CONFIGS = [
    *({"weight": 1, **entry["example"]} for entry in assertion_types()),
    *({**entry["example"], "transform": "json_path:$.a"} for entry in assertion_types()),
    {"type": "is-json", "value": SCHEMA, "transform": "json_path:$.a[0]"},
    {"type": "contains-json", "value": SCHEMA, "metric": "m"},
    {"type": "regex", "value": r"(?i)^(\w+\s?)+[.!]$"},
    {"type": "word-count", "value": {"min": 1, "max": 9}},
    {"type": "levenshtein", "value": "kitten", "threshold": 3, "weight": 0.5},
    {"type": "contains-all", "value": ["a", "b"]},
]
configs = st.sampled_from(CONFIGS).flatmap(broken) | st.sampled_from(CONFIGS)
documents = values | st.builds(nested, values, st.sampled_from([1, 50, 2000]), in_lists=st.booleans())
patterns = st.from_regex(r"[ab.]{0,3}(\((\?:)?[ab|*+.]{0,4}\)[*+?]?){0,3}[ab$]{0,2}", fullmatch=True)
outputs: st.SearchStrategy[Any] = (
    texts
    | documents
    | values.map(json.dumps)
    | st.sampled_from(['{"a": 1e999}', '{"a": "\\ud800"}', '["\\u0000"]', '{"\\ud800": 1}', "9" * 5000])
    | st.builds(lambda text, times: text * times, st.sampled_from(["a", "{", "[", '{"a":', "a b ", '"', "\n"]), st.sampled_from([9, 5000, 60_000]))
    | st.lists(values.map(json.dumps) | texts, max_size=5).map(" ".join)
)  # fmt: skip
contexts = st.builds(
    AssertionContext,
    output=outputs,
    cost_usd=st.none() | st.floats() | st.sampled_from([10**400, -1, True]),
    latency_ms=st.none() | st.floats(),
    variables=st.dictionaries(keys, scalars, max_size=2),
)


def opposite(config: Any) -> Any:
    """The config with `not-` put before its type, or taken away."""
    name = config["type"]
    turned = name.removeprefix("not-") if name.startswith("not-") else f"not-{name}"
    return {**config, "type": turned}


def check(result: GradingResult) -> None:
    assert 0.0 <= result.score <= 1.0
    assert math.isfinite(result.weight)
    assert result.weight >= 0
    assert result.reason
    assert result.measured is None or math.isfinite(result.measured)
    if result.error:
        assert (result.passed, result.score) == (False, 0.0)
    check_storable(result.to_dict())


def check_storable(value: Any) -> None:
    """Every database takes it: no number beyond floats, no NUL, no half of a surrogate pair."""
    assert storable(value) == value
    json.dumps(value, allow_nan=False)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Libraries that come in when first needed, so that no example waits for them."""
    for entry in assertion_types():
        run_assertion(entry["example"], AssertionContext('{"a": "b c d"}'))


@effort(150)
@given(configs, contexts)
def test_any_config_gives_a_verdict_and_its_opposite_the_other(config: Any, context: Any) -> None:
    with in_time():
        problems = validate_assertions([config])
        result = run_assertion(config, context)
    check(result)
    if problems:
        assert result.error
    json.dumps([asdict(problem) for problem in problems]).encode()
    assume(isinstance(config, dict) and isinstance(config.get("type"), str))
    with in_time():
        other = run_assertion(opposite(config), context)
    check(other)
    # A time limit may fall between the two; whatever else is an error is one for both.
    if "time" not in result.reason + other.reason:
        assert result.error is other.error
    if not (result.error or other.error):
        assert other.passed is not result.passed
        assert other.score == 1.0 - result.score


@effort(60)
@given(patterns, st.text("ab", max_size=200) | st.sampled_from(["a" * 30_000, "ab" * 15_000]), st.booleans())
def test_any_pattern_ends(pattern: str, output: str, has_transform: bool) -> None:
    config = {"type": "regex", "value": pattern}
    if has_transform:
        config["transform"] = "json_path:$.a"
        output = json.dumps({"a": output})
    with in_time(3):
        check(run_assertion(config, AssertionContext(output)))


@effort(40)
@given(st.lists(configs, max_size=6), contexts)
def test_suites_sum_up_within_bounds(suite: list[Any], context: Any) -> None:
    with in_time(20):
        result = run_assertions_sync(suite, context)
        again = compile_assertions(suite).run(context)
    assert len(result.results) == len(suite)
    assert 0.0 <= result.aggregate_score <= 1.0
    assert math.isfinite(result.total_weight)
    assert all(0.0 <= score <= 1.0 for score in result.named_scores.values())
    check_storable(again.to_dict())


def test_reference_to_an_item_far_beyond_the_end_is_a_fault() -> None:
    schema = {"allOf": [{}], "$ref": "#/allOf/" + "9" * 5000}
    (problem,) = validate_assertions([{"type": "is-json", "value": schema}])
    assert "points to nothing" in problem.message


WRITTEN = write_assertions(CONFIGS)


@effort(40)
@given(broken_text(WRITTEN) | st.text("-[]{}:,& *!|>'\"\n at", max_size=40))
def test_any_written_list_is_read_or_refused_with_a_line(text: str) -> None:
    with in_time():
        found, faults = read_assertions(text)
    assert all(fault.message for fault in faults)
    assert all(isinstance(one, dict) for one in found)
