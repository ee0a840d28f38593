"""Every assertion type: rows that pass, rows that fail, rows that cannot be checked."""

from __future__ import annotations

import pytest

from evals_app.assertions import AssertionContext, assertion_types, run_assertion

PASS, FAIL, ERROR = "pass", "fail", "error"

OBJECT = {"type": "object", "required": ["a"]}
CYRILLIC = "Съешь же ещё этих мягких французских булок"
JAPANESE = "吾輩は猫である。名前はまだ無い。"

# config without the type, output, verdict; a config with "type" overrides nothing but the row's own
CASES: dict[str, list[tuple[dict[str, object], object, str]]] = {
    "equals": [
        ({"value": "ok"}, "ok", PASS),
        ({"value": "ok"}, "OK", FAIL),
        ({"value": "ok"}, "ok ", FAIL),
        ({"value": ""}, "", PASS),
        ({"value": ""}, " ", FAIL),
        ({"value": '{"a": 1, "b": 2}'}, '{"b":2.0,"a":1}', PASS),
        ({"value": "1"}, "1.0", PASS),
        ({"value": "true"}, "1", FAIL),
        ({"value": {"b": [True], "a": 1}}, '{"a": 1.0, "b": [true]}', PASS),
        ({"value": {"b": [True]}}, '{"b": [1]}', FAIL),
        ({"value": [1, 2]}, "[2, 1]", FAIL),
        ({"value": 5}, "5.0", PASS),
        ({"value": 5}, "five", FAIL),
        ({"value": True}, "true", PASS),
        ({"value": True}, "1", FAIL),
        ({"value": 1}, "true", FAIL),
        ({"value": None}, "null", PASS),
        ({"value": None}, "", FAIL),
        ({"value": {"a": 1}}, {"a": 1}, PASS),
        ({}, "x", ERROR),
        ({"value": float("nan")}, "NaN", ERROR),
        ({"value": {1, 2}}, "x", ERROR),
    ],
    "contains": [
        ({"value": "needle"}, "hay needle hay", PASS),
        ({"value": "Needle"}, "hay needle hay", FAIL),
        ({"value": True}, "it is true", PASS),
        ({"value": 1.5}, "costs 1.5", PASS),
        ({"value": ""}, "x", ERROR),
        ({"value": None}, "None", ERROR),
        ({}, "x", ERROR),
        ({"value": ["x"]}, "x", ERROR),
        ({"value": {"x": 1}}, "x", ERROR),
    ],
    "icontains": [
        ({"value": "NEEDLE"}, "hay Needle hay", PASS),
        ({"value": "strasse"}, "Große STRAẞE", PASS),
        ({"value": "pin"}, "hay", FAIL),
        ({"value": ""}, "x", ERROR),
    ],
    "contains-all": [
        ({"value": ["a", "b"]}, "ab", PASS),
        ({"value": ["a", "b"]}, "a", FAIL),
        ({"value": "a"}, "a", PASS),
        ({"value": [1, True]}, "1 true", PASS),
        ({"value": []}, "a", ERROR),
        ({"value": ["a", ""]}, "a", ERROR),
        ({"value": ["a", None]}, "a", ERROR),
        ({"value": ["a", ["b"]]}, "ab", ERROR),
    ],
    "contains-any": [
        ({"value": ["x", "b"]}, "ab", PASS),
        ({"value": ["x", "y"]}, "ab", FAIL),
        ({"value": "a"}, "a", PASS),
        ({"value": []}, "a", ERROR),
        ({"value": ["", "x"]}, "a", ERROR),
    ],
    "starts-with": [
        ({"value": "Dear"}, "Dear all", PASS),
        ({"value": "Dear"}, "Oh Dear", FAIL),
        ({"value": 4}, "42", PASS),
        ({"value": ""}, "x", ERROR),
    ],
    "regex": [
        ({"value": r"\d{4}-\d\d"}, "on 2024-05", PASS),
        ({"value": r"^\d+$"}, "a1", FAIL),
        ({"value": "(?i)OK"}, "ok", PASS),
        ({"value": "fo{e<=1}"}, "f", FAIL),  # in `re` a literal, not a fuzzy match
        ({"value": "("}, "(", ERROR),
        ({"value": r"\p{L}"}, "x", ERROR),  # the matcher's syntax is wider than `re`
        ({"value": ""}, "x", ERROR),
        ({"value": r"(a|aa)+$"}, "a" * 60 + "b", ERROR),
    ],
    "word-count": [
        ({"value": 3}, "one  two\nthree", PASS),
        ({"value": 3}, "one two", FAIL),
        ({"value": 0}, " ", PASS),
        ({"value": "2"}, "one two", PASS),
        ({"value": 2.0}, "one two", PASS),
        ({"value": {"min": 2, "max": 3}}, "one two", PASS),
        ({"value": {"min": 2, "max": 3}}, "one two three four", FAIL),
        ({"value": {"min": 2}}, "one", FAIL),
        ({"value": {"max": 1}}, "one", PASS),
        ({"value": {"min": 2, "max": None}}, "one two", PASS),
        ({"value": {"min": 3, "max": 2}}, "a b", ERROR),
        ({"value": {}}, "a b", ERROR),
        ({"value": {"minimum": 2}}, "a b", ERROR),
        ({"value": True}, "a", ERROR),
        ({"value": {"min": True}}, "a", ERROR),
        ({"value": 1.5}, "a", ERROR),
        ({"value": -1}, "a", ERROR),
        ({"value": "many"}, "a", ERROR),
    ],
    "is-json": [
        ({}, '{"a": 1}', PASS),
        ({}, " 5 ", PASS),
        ({"value": None}, "[]", PASS),
        ({"value": ""}, "[]", PASS),
        ({"value": {}}, "[]", PASS),
        ({}, "NaN", FAIL),
        ({}, '{"a": Infinity}', FAIL),
        ({}, "{'a': 1}", FAIL),
        ({}, "", FAIL),
        ({}, '{"a": 1} trailing', FAIL),
        ({"value": OBJECT}, '{"a": 1}', PASS),
        ({"value": OBJECT}, '{"b": 1}', FAIL),
        ({"value": OBJECT}, "prose", FAIL),
        ({"value": False}, "1", FAIL),
        ({"value": {"type": "integer"}}, "true", FAIL),
        ({"value": {"type": "strin"}}, "1", ERROR),
        ({"value": {"pattern": "("}}, '"("', ERROR),
        ({"value": "object"}, "{}", ERROR),
        ({"value": 5}, "5", ERROR),
        ({"value": {"$ref": "https://example.com/schema"}}, "{}", ERROR),
        ({"value": {"$ref": "#"}}, "{}", ERROR),
        ({"value": {"$schema": "https://example.com/mine"}}, "{}", ERROR),
        ({}, "[" * 100_000, ERROR),
        ({}, "9" * 5_000, ERROR),
    ],
    "contains-json": [
        ({}, 'Here: {"a": 1}. Bye', PASS),
        ({}, "see [1]", PASS),
        ({}, "{}", PASS),
        ({}, "just 5 and true", FAIL),
        ({}, "{a: 1} [x]", FAIL),
        ({}, '{"a": NaN}', FAIL),
        ({"value": OBJECT}, 'see [1] and {"b": 2} then {"a": 1}', PASS),
        ({"value": OBJECT}, '[{"b": {"deep": {"a": 1}}}]', PASS),
        ({"value": OBJECT}, '{"b": 1}', FAIL),
        ({"value": OBJECT}, '{"x": "{" , {"a": 1}', PASS),
        ({"value": OBJECT}, '{"text": "{\\"a\\": 1}"}', FAIL),
        ({"value": {"type": "integer"}}, "[1]", FAIL),  # only objects and arrays are candidates
        ({"value": ""}, "{}", PASS),
        ({"value": {"type": 5}}, "{}", ERROR),
        ({"value": []}, "{}", ERROR),
    ],
    "levenshtein": [
        ({"value": "kitten"}, "sitting", PASS),
        ({"value": "kitten", "threshold": 2}, "sitting", FAIL),
        ({"value": "kitten", "threshold": "3"}, "sitting", PASS),
        ({"value": "kitten", "threshold": None}, "sitting", PASS),
        ({"value": "", "threshold": 2}, "ab", PASS),
        ({"value": "", "threshold": 2}, "abc", FAIL),
        ({"value": "abcdef", "threshold": 0}, "abcdef", PASS),
        ({"value": "a" * 6}, "", FAIL),
        ({"value": "a" * 5}, "", PASS),
        ({"value": 12}, "12", PASS),
        ({"value": None}, "", ERROR),
        ({}, "", ERROR),
        ({"value": "x", "threshold": -1}, "x", ERROR),
        ({"value": "x", "threshold": True}, "x", ERROR),
        ({"value": "x", "threshold": float("inf")}, "x", ERROR),
    ],
    "bleu": [
        ({"value": "the cat sat on the mat"}, "the cat sat on the mat", PASS),
        ({"value": "Hi"}, "hi", PASS),  # identical, however short
        ({"value": "the cat sat on the mat"}, "the cat sat on a mat", PASS),
        ({"value": "the cat sat on the mat", "threshold": 0.9}, "the cat sat on a mat", FAIL),
        ({"value": "the cat sat on the mat"}, "dogs bark", FAIL),
        ({"value": "the cat"}, "", FAIL),
        ({"value": ""}, "", ERROR),
        ({"value": " "}, " ", ERROR),
        ({"value": "x", "threshold": 1.5}, "x", ERROR),
        ({"value": "x", "threshold": "high"}, "x", ERROR),
    ],
    "rouge-n": [
        ({"value": "the cat sat"}, "The cat, sat!", PASS),
        ({"value": "the cat sat"}, "the dog ran", FAIL),
        ({"value": "a b c d"}, "a b c", PASS),
        ({"value": "a b c d", "threshold": 0.9}, "a b c", FAIL),
        ({"value": CYRILLIC, "threshold": 1}, CYRILLIC, PASS),
        ({"value": JAPANESE, "threshold": 1}, JAPANESE, PASS),
        ({"value": JAPANESE}, CYRILLIC, FAIL),
        ({"value": "a"}, "", FAIL),
        ({"value": "..."}, "...", ERROR),
        ({"value": "x", "threshold": -0.1}, "x", ERROR),
    ],
}

MEASURED = [
    ("cost", "cost_usd", 0.05, 0.05, PASS),
    ("cost", "cost_usd", 0.1 + 0.2, 0.3, PASS),  # float noise
    ("cost", "cost_usd", 0.050001, 0.05, FAIL),
    ("cost", "cost_usd", 0, 0, PASS),
    ("cost", "cost_usd", None, 0.05, ERROR),
    ("cost", "cost_usd", float("nan"), 0.05, ERROR),
    ("cost", "cost_usd", 0.01, None, ERROR),
    ("cost", "cost_usd", 0.01, True, ERROR),
    ("cost", "cost_usd", 0.01, -1, ERROR),
    ("cost", "cost_usd", 0.01, "0.05", PASS),
    ("latency", "latency_ms", 800.0, 800, PASS),
    ("latency", "latency_ms", 800.1, 800, FAIL),
    ("latency", "latency_ms", None, 800, ERROR),
    ("latency", "latency_ms", 1.0, None, ERROR),
    ("latency", "latency_ms", 1.0, "soon", ERROR),
]

ROWS = [(type_, *row) for type_, rows in CASES.items() for row in rows]


def outcome(result):
    return ERROR if result.error else PASS if result.passed else FAIL


@pytest.mark.parametrize(("type_", "options", "output", "expected"), ROWS)
def test_type_checks_output(type_, options, output, expected):
    result = run_assertion({"type": type_, **options}, AssertionContext(output=output))
    assert outcome(result) == expected, result.reason
    assert result.type == type_
    assert result.reason.endswith((".", "?")), result.reason


@pytest.mark.parametrize(("type_", "options", "output", "expected"), ROWS)
def test_negation_negates_verdicts_and_never_errors(type_, options, output, expected):
    context = AssertionContext(output=output)
    plain = run_assertion({"type": type_, **options}, context)
    negated = run_assertion({"type": f"not-{type_}", **options}, context)
    assert outcome(negated) == {PASS: FAIL, FAIL: PASS, ERROR: ERROR}[expected]
    assert negated.type == f"not-{type_}"
    assert negated.score == (0.0 if expected == ERROR else 1.0 - plain.score)


@pytest.mark.parametrize(("type_", "measure", "measured", "threshold", "expected"), MEASURED)
def test_measurement_is_compared_with_threshold(type_, measure, measured, threshold, expected):
    context = AssertionContext(output="", **{measure: measured})
    result = run_assertion({"type": type_, "threshold": threshold}, context)
    assert outcome(result) == expected, result.reason
    if measured is None:
        assert f"{type_} was not recorded" in result.reason
    negated = run_assertion({"type": f"not-{type_}", "threshold": threshold}, context)
    assert outcome(negated) == {PASS: FAIL, FAIL: PASS, ERROR: ERROR}[expected]


def test_every_type_has_rows_of_all_three_outcomes():
    rows = {type_: {row[-1] for row in found} for type_, found in CASES.items()}
    for type_, *_, expected in MEASURED:
        rows.setdefault(type_, set()).add(expected)
    assert rows == {entry["type"]: {PASS, FAIL, ERROR} for entry in assertion_types()}


def test_there_are_fifteen_types_and_their_examples_are_valid():
    from evals_app.assertions import validate_assertions

    types = assertion_types()
    assert len(types) == 15
    assert validate_assertions([entry["example"] for entry in types]) == []
