"""Nothing that comes in hangs the engine, breaks it or makes it fetch anything."""

from __future__ import annotations

import json
import socket
import time

import pytest

from evals_app.assertions import (
    AssertionContext,
    assertion_types,
    compile_assertions,
    run_assertion,
    validate_assertions,
)
from tests.timing import PROMPTLY

EVERY_TYPE = [entry["example"] for entry in assertion_types()]
TEN_MEGABYTES = 10_000_000

OUTPUTS = {
    "brackets": "[" * 100_000,
    "closed brackets": "[" * 100_000 + "]" * 100_000,
    "braces": '{"a":' * 100_000,
    "half strings": '{"{"' * 30_000,
    "quotes": '"{' * 50_000,
    "escapes": '{"\\' * 30_000,
    "long integer": "9" * 5_000,
    "long integer inside": '{"a": [' + "9" * 5_000 + "]}",
    "surrogates": '\ud800 {"a": "\udfff"} \ud83d',
    "NUL": '\x00{"a": 1}\x00',
    "not text": {1, 2},
    "NaN": float("nan"),
    "number": 5,
    "nothing": None,
    "bytes": b"bytes",
    "many documents": '{"a": 1} ' * 5_000,
    "empty": "",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_type_answers_soon_and_with_a_reason(name):
    configs = EVERY_TYPE + [{**config, "transform": "json_path:$..a"} for config in EVERY_TYPE]
    started = time.perf_counter()
    result = compile_assertions(configs).run(AssertionContext(output=OUTPUTS[name]))
    assert time.perf_counter() - started < 20
    assert len(result.results) == 30
    for one in result.results:
        assert one.reason
        assert len(one.reason) < 500
        one.reason.encode("utf-8")  # no lone surrogate, so any database takes it
        assert "\x00" not in one.reason
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", ["brackets", "closed brackets", "long integer", "long integer inside"])
def test_json_too_deep_or_too_long_is_an_error(name):
    result = run_assertion({"type": "is-json"}, AssertionContext(OUTPUTS[name]))
    assert result.error
    assert "nested deeper than 400" in result.reason or "more digits" in result.reason


def test_depth_is_limited_exactly():
    for depth, error in ((400, False), (401, True)):
        result = run_assertion({"type": "is-json"}, AssertionContext("[" * depth + "]" * depth))
        assert result.error is error


def test_brackets_inside_strings_are_not_depth():
    assert run_assertion({"type": "is-json"}, AssertionContext(json.dumps(["[" * 5_000]))).passed


@pytest.mark.parametrize("text", ["word " * (TEN_MEGABYTES // 5), "[" * TEN_MEGABYTES, "x" * TEN_MEGABYTES])
def test_ten_megabytes_end(text):
    started = time.perf_counter()
    result = compile_assertions(EVERY_TYPE).run(AssertionContext(output=text))
    assert len(result.results) == 15
    assert time.perf_counter() - started < 45


def test_two_long_texts_are_not_compared_without_bound():
    one, other = "ab" * 2_000_000, "ba" * 2_000_000
    started = time.perf_counter()
    result = run_assertion(
        {"type": "levenshtein", "value": one, "threshold": 4_000_000}, AssertionContext(other)
    )
    assert result.error
    assert "too long to compare" in result.reason
    assert not run_assertion(
        {"type": "levenshtein", "value": one[:5_000], "threshold": 5}, AssertionContext(other)
    ).passed
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(a|aa)+$"},
        {"not": {"pattern": "(a|aa)+$"}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "(a|aa)+$"},
    ],
)
def test_pattern_in_a_schema_is_timed(schema):
    started = time.perf_counter()
    result = run_assertion(
        {"type": "is-json", "value": schema}, AssertionContext(json.dumps("a" * 5_000 + "!"))
    )
    assert result.error
    assert "stopped after" in result.reason
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"(a|aa)+$": {}}},
        {"patternProperties": {"(a|aa)+$": {}}, "additionalProperties": False},
        {"additionalProperties": False, "patternProperties": {"(a|aa)+$": {}}},
        {"unevaluatedProperties": False, "patternProperties": {"(a|aa)+$": {}}},
        {"propertyNames": {"pattern": "(a|aa)+$"}},
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "unevaluatedProperties": False,
            "patternProperties": {"(a|aa)+$": {}},
        },
    ],
)
def test_pattern_for_property_names_is_timed(schema):
    started = time.perf_counter()
    result = run_assertion(
        {"type": "is-json", "value": schema}, AssertionContext(json.dumps({"a" * 5_000 + "!": 1}))
    )
    assert result.error
    assert "stopped after" in result.reason
    assert time.perf_counter() - started < 5


def test_schema_that_refers_to_itself_is_an_error():
    for schema in ({"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}):
        result = run_assertion({"type": "is-json", "value": schema}, AssertionContext("{}"))
        assert result.error
        assert "recurses" in result.reason


def test_schema_that_doubles_its_work_is_stopped():
    defs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**defs, "d30": {"type": "object"}}}
    started = time.perf_counter()
    result = run_assertion({"type": "is-json", "value": schema}, AssertionContext("{}"))
    assert result.error
    assert "took longer than 2 s" in result.reason
    assert time.perf_counter() - started < 8


def test_unique_items_are_compared_in_linear_time():
    config = {"type": "is-json", "value": {"uniqueItems": True}}
    output = json.dumps([{"id": i, "tags": [i]} for i in range(20_000)])
    started = time.perf_counter()
    assert run_assertion(config, AssertionContext(output)).passed
    assert time.perf_counter() - started < PROMPTLY


@pytest.mark.parametrize(
    ("output", "unique"),
    [
        ("[1, true]", True),
        ("[1, 1.0]", False),
        ('[{"a": 1, "b": 2}, {"b": 2, "a": 1}]', False),
        ("[[1], [true]]", True),
        ('[0, false, null, ""]', True),
        ("[[], {}]", True),
    ],
)
def test_unique_items_compare_as_json_does(output, unique):
    config = {"type": "is-json", "value": {"uniqueItems": True}}
    assert run_assertion(config, AssertionContext(output)).passed is unique


def test_remote_reference_is_never_fetched(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a schema reached for the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for schema in (
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$id": "http://127.0.0.1:1/root.json", "$ref": "other.json"},
        {"$id": "http://127.0.0.1:1/root.json", "$dynamicRef": "http://127.0.0.1:1/x#y"},
    ):
        for type_ in ("is-json", "not-is-json", "contains-json"):
            result = run_assertion({"type": type_, "value": schema}, AssertionContext("{}"))
            assert result.error, result.reason


def test_reference_within_the_schema_works():
    schema = {"$defs": {"id": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/id"}}}
    config = {"type": "is-json", "value": schema}
    assert run_assertion(config, AssertionContext('{"a": 1}')).passed
    assert not run_assertion(config, AssertionContext('{"a": "1"}')).passed


def test_contains_json_stops_after_a_thousand_candidates():
    config = {"type": "contains-json", "value": {"required": ["a"], "type": "object"}}
    few, many = "[1] " * 999 + '{"a": 1}', "[1] " * 1_000 + '{"a": 1}'
    assert run_assertion(config, AssertionContext(few)).passed
    result = run_assertion(config, AssertionContext(many))
    assert result.error
    assert "1,000" in result.reason


def test_contains_json_looks_at_the_outermost_first():
    config = {"type": "contains-json", "value": {"type": "object"}}
    output = json.dumps([[i] for i in range(2_000)]) + ' {"last": 1}'
    assert run_assertion(config, AssertionContext(output)).passed


def test_circular_config_is_a_problem():
    loop: dict[str, object] = {"type": "equals"}
    loop["value"] = loop
    assert run_assertion(loop, AssertionContext("x")).error
    items: list[object] = []
    items.append(items)
    assert run_assertion({"type": "contains-all", "value": items}, AssertionContext("x")).error


@pytest.mark.parametrize(
    "schema",
    [
        {"if": {"type": "array"}, "then": {"items": {"$ref": "#"}}},
        {"not": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}},
        {"unevaluatedItems": {"$ref": "#"}},
    ],
)
@pytest.mark.parametrize("depth", [150, 160, 170, 250, 400])
def test_recursion_ends_as_an_error_and_not_as_a_panic(schema, depth, capfd):
    plan = compile_assertions([{"type": "is-json", "value": schema}, {"type": "contains", "value": "["}])
    first, second = plan.run(AssertionContext("[" * depth + "]" * depth)).results
    assert first.passed or "recurses too deeply" in first.reason
    assert first.error is (not first.passed)
    assert second.passed
    assert "panicked" not in capfd.readouterr().err


class Panic(BaseException):
    """What a library written in Rust raises."""


@pytest.mark.parametrize("place", ["prepare", "check"])
def test_no_exception_of_any_kind_leaves_the_engine(place, monkeypatch):
    from evals_app.assertions.types.text import Contains

    def panic(*arguments):
        raise Panic("at the limit")

    monkeypatch.setattr(Contains, place, panic)
    result = run_assertion({"type": "contains", "value": "x"}, AssertionContext("x"))
    assert result.error
    assert "Panic: at the limit" in result.reason


def test_no_exception_of_any_kind_leaves_the_validation(monkeypatch):
    from evals_app.assertions.matching import json_schemas

    def panic(*arguments):
        raise Panic("at the limit")

    monkeypatch.setattr(json_schemas, "load_schema", panic)
    config = {"type": "is-json", "value": {"type": "object"}}
    (problem,) = validate_assertions([config])
    assert "Panic: at the limit" in problem.message
    assert run_assertion(config, AssertionContext("{}")).error


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_being_stopped_is_no_result(stop, monkeypatch):
    from evals_app.assertions.types.text import Contains

    def raise_stop(*arguments):
        raise stop

    monkeypatch.setattr(Contains, "check", raise_stop)
    with pytest.raises(stop):
        run_assertion({"type": "contains", "value": "x"}, AssertionContext("x"))


@pytest.mark.parametrize("type_", ["equals", "not-equals"])
def test_value_too_deep_to_compare_is_refused_however_it_is_written(type_):
    text = "[" * 450 + "]" * 450
    for value in (text, json.loads(text)):
        config = {"type": type_, "value": value}
        (problem,) = validate_assertions([config])
        assert "deeper than 400" in problem.message
        assert run_assertion(config, AssertionContext("[" * 450 + " " + "]" * 450)).error


def test_assertions_that_take_long_together_are_not_begun_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals_app.assertions.limits.BLOCK_SECONDS", 0.2)
    # Each search takes its quarter of a second, so the first that begins is the last.
    slow = {"type": "regex", "value": "(a|a)+$"}
    context = AssertionContext(output="a" * 40 + "b")
    began = time.perf_counter()
    result = compile_assertions([slow] * 200).run(context)
    assert time.perf_counter() - began < 2
    assert all(one.error for one in result.results)
    assert "Not checked" in result.results[-1].reason and "Not checked" not in result.results[0].reason
