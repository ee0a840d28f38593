"""Patterns mean what `re` says they mean, and stop when their time is over."""

from __future__ import annotations

import re
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals_app.assertions import (
    AssertionContext,
    BadOption,
    compile_assertions,
    run_assertion,
    validate_assertions,
)
from evals_app.assertions.limits import PatternBudget
from evals_app.assertions.matching.patterns import compile_pattern
from tests.timing import PROMPTLY

EXPLOSIVE = ["(a|aa)+$", "(a|a?)+$"]
LONG = "ab" * 40 + "a" * 5_000 + "!"


def found(pattern, text):
    return compile_pattern(pattern).found_in(text, PatternBudget())


PARTS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "-",
        " ",
        "{",
        "}",
        "{2}",
        "{1,}",
        "{,2}",
        "{,}",
        "{e<=1}",
        "{x",
        "[ab]",
        "[^a]",
        "[]a]",
        "[[a]",
        "[[:alpha:]]",
        "[a\\]]",
        "\\d",
        "\\w",
        "\\b",
        "\\{",
        "\\x61",
        "(",
        ")",
        "(?:",
        "(?=",
        "(?!",
        "(?P<n>",
        "(?i:",
        "(?#{x)",
        "|",
        "*",
        "+",
        "?",
        ".",
        "^",
        "$",
        "&&",
        "--",
        "\\1",
        "(?P=n)",
        "(?x: # {\n",
        "1",
        "\n",
    ]
)
TEXTS = st.text(alphabet="aAb{}e<=1x2 -[]:lph\n#", max_size=12)


@given(st.lists(PARTS, max_size=8).map("".join), TEXTS)
def test_verdict_is_that_of_re(pattern, text):
    try:
        with warnings.catch_warnings(action="ignore"):
            expected = re.search(pattern, text) is not None
    except (re.error, RecursionError):
        with pytest.raises(BadOption):
            compile_pattern(pattern)
        return
    assert found(pattern, text) is expected


@pytest.mark.parametrize("pattern", EXPLOSIVE)
@pytest.mark.parametrize("type_", ["regex", "not-regex"])
def test_explosive_pattern_is_stopped_as_an_error(pattern, type_):
    started = time.perf_counter()
    result = run_assertion({"type": type_, "value": pattern}, AssertionContext(LONG))
    assert time.perf_counter() - started < PROMPTLY
    assert (result.passed, result.score, result.error) == (False, 0.0, True)
    assert "stopped after 250 ms" in result.reason


def test_the_textbook_pattern_ends():
    started = time.perf_counter()
    result = run_assertion({"type": "regex", "value": "^(a+)+$"}, AssertionContext("a" * 100_000 + "!"))
    assert not result.passed
    assert time.perf_counter() - started < PROMPTLY


def test_a_block_that_spent_its_time_gives_each_further_pattern_little():
    plan = compile_assertions([{"type": "regex", "value": "(a|aa)+$"}] * 12)
    result = plan.run(AssertionContext(LONG))
    limits = [250 if "250 ms" in one.reason else 25 if "25 ms" in one.reason else 0 for one in result.results]
    assert limits[0] == 250
    assert limits[-1] == 25
    assert limits == sorted(limits, reverse=True)
    assert limits.count(250) <= 8  # fewer on a busy machine, where each takes longer than it should


def test_patterns_are_not_charged_to_another_block():
    plan = compile_assertions([{"type": "regex", "value": "(a|aa)+$"}])
    for _ in range(2):
        assert "250 ms" in plan.run(AssertionContext(LONG)).results[0].reason


@pytest.mark.parametrize(
    "pattern", ["long" * 2_000, "(?i)" + "long" * 2_000, "(?:long){2000}", "\\." * 4_000]
)
def test_long_literal_is_prepared_quickly_and_still_found(pattern):
    started = time.perf_counter()
    assert not found(pattern, "other" * 2_000)
    assert found(pattern, "..." + ("long" * 2_000 if "long" in pattern else "." * 4_000) + "...")
    assert time.perf_counter() - started < 5


@given(st.integers(90, 320), st.text(alphabet="ab(){}", max_size=6))
def test_breaking_up_a_literal_changes_no_verdict(length, tail):
    pattern = re.escape("ab" * length + tail) + "+c?"
    for text in ("x" + "ab" * length + tail + "cc", "ab" * (length - 1) + tail):
        assert found(pattern, text) is (re.search(pattern, text) is not None)


def test_reference_numbers_survive_the_spelling():
    pattern = f"(x)(?P<name>y){'z' * 300}(?P=name)\\1{{1,2}}"
    assert found(pattern, "xy" + "z" * 300 + "yx")
    assert not found(pattern, "xy" + "z" * 299 + "yx")


def test_a_reason_shows_a_pattern_as_it_was_written():
    assert (
        "'\\b(TODO|TBD)\\b'"
        in run_assertion({"type": "not-regex", "value": r"\b(TODO|TBD)\b"}, AssertionContext("ok")).reason
    )
    assert (
        repr("it's\n") in run_assertion({"type": "regex", "value": "it's\n"}, AssertionContext("ok")).reason
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "a{20000000}",
        "(?:a{65000}){65000}",
        "(a)(?(1)b{1000}){1000}",
        "(?x)(?:a {1000}) # thousands\n {1000}",
        "(?:a{400}){400}|b",
        "a{" + "9" * 5_000 + "}",
    ],
)
@pytest.mark.parametrize("place", ["regex", "schema", "property names"])
def test_pattern_that_repeats_too_much_is_refused(pattern, place):
    config = {
        "regex": {"type": "regex", "value": pattern},
        "schema": {"type": "is-json", "value": {"pattern": pattern}},
        "property names": {"type": "is-json", "value": {"patternProperties": {pattern: {}}}},
    }[place]
    (problem,) = validate_assertions([config])
    assert "repeats too much" in problem.message or "too complicated" in problem.message
    assert run_assertion(config, AssertionContext('"a"')).error


@pytest.mark.parametrize("pattern", ["a{50000}", "(?:a{100}){100}", "[ab]{0,60000}$", "x{1,5}(?:y{2}z){3,}"])
def test_pattern_that_repeats_within_the_limit_is_taken(pattern):
    assert validate_assertions([{"type": "regex", "value": pattern}]) == []
