"""`json_path` transforms: what they take out, what they refuse, and that our walk is the library's."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse as library_parse

from evals_app.assertions import AssertionContext, compile_assertions, run_assertion, validate_assertions
from evals_app.assertions.matching.json_paths import MISSING, compile_path

DOCUMENT = {
    "answer": "yes",
    "count": 3,
    "flag": True,
    "none": None,
    "items": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}],
    "имя": {"ключ": "значение"},
    "two words": "quoted",
    "a": {"b": {"c": "deep"}},
    "where": {"true": "reserved"},
}

TAKEN = [
    ("$.answer", "yes"),
    ("$.count", "3"),
    ("$.flag", "true"),
    ("$.none", "null"),
    ("$.items[0].name", "one"),
    ("$.items[-1].name", "two"),
    ("$.items[*].id", "1"),
    ("$.items[1:].name", "two"),
    ("$.items[0]", '{"id": 1, "name": "one"}'),
    ("$.items[?(@.id == 2)].name", "two"),
    ("$.items[?(@.id > 1 && @.name != 'one')].name", "two"),
    ("$.items[?(@.name == 'two')].id", "2"),
    ("$.имя.ключ", "значение"),
    ("$['имя']['ключ']", "значение"),
    ('$["two words"]', "quoted"),
    ("$..c", "deep"),
    ("$..[?(@.id == 2)].name", "two"),
    ("answer", "yes"),
    ("$.items.`len`", "2"),
    ("$.'where'.true", "reserved"),
    ("$.имя", '{"ключ": "значение"}'),
]


@pytest.mark.parametrize(("path", "expected"), TAKEN)
def test_first_match_is_checked_as_text_or_json_text(path, expected):
    plan = compile_assertions([{"type": "equals", "value": expected, "transform": f"json_path:{path}"}])
    assert plan.run(AssertionContext(output=json.dumps(DOCUMENT))).passed()
    assert plan.run(AssertionContext(output=DOCUMENT)).passed()


@pytest.mark.parametrize(
    ("transform", "output", "said"),
    [
        ("json_path:$.answer", "prose", "not"),
        ("json_path:$.missing", '{"a": 1}', "matches nothing"),
        ("json_path:$.a[0]", '{"a": 1}', "matches nothing"),
        ("json_path:$.a[", '{"a": 1}', "not a JSON path"),
        ("json_path:", '{"a": 1}', "no path"),
        ("upper", '{"a": 1}', "unknown"),
        ("jsonpath:$.a", '{"a": 1}', "unknown"),
        (5, '{"a": 1}', "must be text"),
        ("json_path:$.a[?(@ =~ 'x+')]", '{"a": ["x"]}', "=~"),
        ("json_path:$.a.`sub(/(x+)+/, y)`", '{"a": "x"}', "sub()"),
        ("json_path:$.a", '{"a": 1e999}', "no JSON text"),
    ],
)
@pytest.mark.parametrize("type_", ["contains", "not-contains"])
def test_failed_transform_is_an_error_that_says_which(type_, transform, output, said):
    config = {"type": type_, "value": "zzz", "transform": transform}
    result = run_assertion(config, AssertionContext(output=output))
    assert (result.passed, result.score, result.error) == (False, 0.0, True)
    assert said in result.reason


def test_failed_transform_stops_no_other_assertion():
    configs = [
        {"type": "contains", "value": "x", "transform": "json_path:$.a"},
        {"type": "contains", "value": "x"},
    ]
    first, second = compile_assertions(configs).run(AssertionContext(output="x")).results
    assert first.error
    assert second.passed


def test_transform_runs_first_also_for_measurements():
    config = {"type": "cost", "threshold": 1, "transform": "json_path:$.a"}
    assert run_assertion(config, AssertionContext(output="prose", cost_usd=0.1)).error
    assert run_assertion(config, AssertionContext(output='{"a": 1}', cost_usd=0.1)).passed


def test_output_is_parsed_once_however_many_look(monkeypatch):
    from evals_app.assertions import context

    parsed = []
    original = context.parse_document
    monkeypatch.setattr(context, "parse_document", lambda text: parsed.append(text) or original(text))
    configs = [
        {"type": "is-json"},
        {"type": "is-json", "value": {"type": "object"}},
        {"type": "equals", "value": {}},
    ]
    configs += [{"type": "equals", "value": "1", "transform": "json_path:$.a"}] * 3
    compile_assertions(configs).run(AssertionContext(output='{"a": 1}'))
    assert parsed == ['{"a": 1}']


def test_bad_output_is_parsed_once_too(monkeypatch):
    from evals_app.assertions import context

    parsed = []
    original = context.parse_document
    monkeypatch.setattr(context, "parse_document", lambda text: parsed.append(text) or original(text))
    compile_assertions([{"type": "is-json"}] * 4).run(AssertionContext(output="prose"))
    assert parsed == ["prose"]


def test_deprecated_spellings_of_paths_work_without_warnings():
    assert validate_assertions([{"type": "contains", "value": "x", "transform": "json_path:$.a | $.b"}]) == []


def test_explosive_path_is_stopped():
    config = {"type": "contains", "value": "x", "transform": "json_path:$..*..*..*..*..zzz"}
    started = time.perf_counter()
    result = run_assertion(config, AssertionContext(output="[" * 100 + "]" * 100))
    assert result.error
    assert "took longer than 2 s" in result.reason
    assert time.perf_counter() - started < 10


NAMES = st.sampled_from(["a", "b", "c", "имя", "x y", "*", "true", "0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 2.5, "a", "b", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)
LITERALS = st.sampled_from(["1", "2.5", "-1", "'a'", "''", "true", "false", "null"])
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@st.composite
def filters(draw):
    target = draw(st.sampled_from(["@", "@.a", "@.b.c", "@.a[0]", "@['имя']", "@..a"]))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return f"[?({target})]"
    if kind == 1:
        return f"[?(!{target})]"
    condition = f"{target} {draw(OPERATORS)} {draw(LITERALS)}"
    if kind == 2:
        return f"[?({condition})]"
    joint = draw(st.sampled_from(["&&", "||"]))
    return f"[?({condition} {joint} @.a {draw(OPERATORS)} {draw(LITERALS)})]"


@st.composite
def steps(draw):
    name = draw(NAMES)
    kinds = [
        f"['{name}']",
        f'["{name}"]',
        "[*]",
        ".*",
        "[0]",
        "[-1]",
        "[1:]",
        "[:2]",
        "[::2]",
        f"..['{name}']",
        "..*",
        "[0,1]",
    ]
    if name.isascii() and name.isalpha():
        kinds += [f".{name}", f"..{name}", f"['a','{name}']"]
    return draw(st.sampled_from(kinds) | filters() | filters().map(lambda text: f"..{text}"))


@given(VALUES, st.lists(steps(), max_size=4))
def test_our_walk_finds_what_the_library_finds(document, parts):
    path = "$" + "".join(parts)
    try:
        parsed = library_parse(path)
    except JSONPathError:  # not a path for the library, so nothing to compare
        return
    found = [match.value for match in parsed.find(document)]
    first = compile_path(path)(document)
    if found:
        assert first is not MISSING
        assert json.dumps(first) == json.dumps(found[0])
    else:
        assert first is MISSING


def check_path(path, document):
    config = {"type": "equals", "value": "yes", "transform": f"json_path:{path}"}
    return run_assertion(config, AssertionContext(json.dumps(document)))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r'$["\u263a"]', "\u263a"),
        (r'$["\ud83d\ude00"]', "\U0001f600"),
        (r'$["\n"]', "\n"),
        (r"$['\t']", "\t"),
        (r"$['it\'s']", "it's"),
        (r'$["it\"s"]', 'it"s'),
        ("""$['a "b"']""", 'a "b"'),
        ("""$["it's"]""", "it's"),
        (r"$['\\']", "\\"),
        (r"$['\/']", "/"),
        ("$['имя']", "имя"),
        ("$['01']", "01"),
        ("$.a-01", "a-01"),
    ],
)
def test_names_with_escapes_match(path, name):
    result = check_path(path, {"nothing": 1, name: "yes"})
    assert result.passed, result.reason


@pytest.mark.parametrize(
    "path",
    [
        r'$["\q"]',
        r"$['\\\q']",
        "$['a\x01']",
        "$['a\n']",
        r'$["\ud83d"]',
        r'$["\u12"]',
        r"""$['\"']""",
        r"""$["\'"]""",
        *("$[01]", "$[-01]", "$[-0]", "$[0:01]", "$[1,02]", "$.01", "$[?(@.a == 01)]"),
    ],
)
def test_bad_escapes_control_characters_and_leading_zeros_are_refused(path):
    assert validate_assertions([{"type": "contains", "value": "x", "transform": f"json_path:{path}"}])


@pytest.mark.parametrize(
    "path", ["$[0]", "$[10]", "$[?(@ == 0.05)]", "$[?(@ == -0.5)]", "$[0:10:2]", "$.a0.b"]
)
def test_plain_numbers_are_taken(path):
    assert validate_assertions([{"type": "contains", "value": "x", "transform": f"json_path:{path}"}]) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("$[*].$[*].$[*]", "$ inside"),
        ("$..$", "$ inside"),
        ("$.a * 150000000", "arithmetic"),
        ("$.a + $.b", "arithmetic"),
        ("$.a[?(@.b * 2 == 4)]", "arithmetic"),
        ("$.a.`parent`", "`parent`"),
        ("$.a.`sub(/a/, b)`", "sub()"),
        ("$.a.`split(x, 0, -1)`", "split()"),
        ("$.a.`str()`", "str()"),
        ("$.a.`sorted`", "sorting"),
        (r"$.a[\b]", "sorting"),
        ("$.a where b", "where"),
        ("$.a & b", "&"),
        ("$" + "[?(@" * 12 + ")]" * 12, "deep"),
    ],
)
def test_what_the_walk_does_not_do_is_refused_when_saving(path, said):
    config = {"type": "contains", "value": "x", "transform": f"json_path:{path}"}
    (problem,) = validate_assertions([config])
    assert said in problem.message
    assert run_assertion(config, AssertionContext('{"a": 1}')).error


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("$[?(@.a == $.wanted)].b", {"wanted": 1, "x": {"a": 1, "b": "yes"}}),
        ("$[?(@.a == @.c)].b", {"x": {"a": 1, "c": 2, "b": "no"}, "y": {"a": 1, "c": 1, "b": "yes"}}),
        ("$.`keys`", {"yes": 1}),
        ("$.(a | b)", {"b": "yes"}),
    ],
)
def test_filters_may_look_at_the_root_and_at_other_parts(path, document):
    assert check_path(path, document).passed


@pytest.mark.parametrize("step", [".*", "..*", "[*]", ".a", "[?(@.a)]"])
def test_path_of_many_steps_is_walked(step):
    path = "$" + step * 330
    assert validate_assertions([{"type": "equals", "value": "", "transform": f"json_path:{path}"}]) == []
    result = check_path(path, {"a": {"a": 1}})
    assert "matches nothing" in result.reason


def test_descendants_in_a_filter_are_under_the_deadline():
    deep = json.loads('{"a":' * 300 + "[" + "1," * 20_000 + "1]" + "}" * 300)
    started = time.perf_counter()
    result = check_path("$..[?(@..* == 7)]..zzz", deep)
    assert "took longer than 2 s" in result.reason
    assert time.perf_counter() - started < 6


@given(VALUES, st.lists(NAMES | st.integers(-3, 3), max_size=4))
def test_plain_paths_equal_the_library(document, parts):
    path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f"['{part}']" for part in parts)
    found = [match.value for match in library_parse(path).find(document)]
    first = compile_path(path)(document)
    assert (first is MISSING) == (not found)
    if found:
        assert json.dumps(first) == json.dumps(found[0])


@given(st.text(max_size=30))
def test_any_text_as_a_path_is_a_path_or_a_problem(text):
    config = {"type": "contains", "value": "x", "transform": f"json_path:{text}"}
    problems = validate_assertions([config])
    result = run_assertion(config, AssertionContext(output='{"a": [1, "x", {"b": null}]}'))
    assert not problems or result.error
