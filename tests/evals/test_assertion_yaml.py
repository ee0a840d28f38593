"""Assertions written as YAML on their own, and which measured numbers pass."""

import pytest
from django.urls import reverse

from evals_app import assertion_yaml
from evals_app.assertion_yaml import read_assertions, write_assertions
from evals_app.assertions import assertion_types, compile_assertions
from evals_app.pages.lab.trial import Trial
from tests.callers import caller

ONE = {"type": "contains", "value": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "- {type: contains, value: x}",
        "assertions:\n  - type: contains\n    value: x",
        "type: contains\nvalue: x",
    ],
)
def test_a_list_a_block_or_one_assertion_is_read(text):
    assert read_assertions(text) == ([ONE], [])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- type: contains\n  value: [", 3, "not valid YAML"),
        ("just words", 1, "Write a list"),
        ("- {type: is-json}\n- word", 2, "a map with a `type`"),
        ("- &a {type: is-json}", 1, "anchor"),
        ("- {type: is-json}\n" * 201, None, "too many"),
    ],
)
def test_what_is_no_list_of_assertions_is_reported_with_its_line(text, line, words):
    found, faults = read_assertions(text)
    assert found == []
    assert faults[0].line == line
    assert words in faults[0].message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- {type: is-json}\n- type: contians\n  value: x", 2),
        ("assertions:\n  - type: bleu\n    value: x\n    treshold: 1", 4),
        ("type: contains\nvalu: x", 2),
    ],
)
def test_a_fault_inside_an_assertion_has_its_line(text, line):
    found, faults = read_assertions(text)
    assert found  # it is an assertion all the same, with an error in its own result
    assert faults[0].line == line


def test_what_is_written_is_read_back():
    examples = [one["example"] for one in assertion_types()]
    assert read_assertions(write_assertions(examples)) == (examples, [])
    assert write_assertions(None) == ""


def test_a_plan_knows_which_measured_numbers_pass():
    configs = [
        {"type": "word-count", "value": {"min": 3, "max": 9}},
        {"type": "not-bleu", "value": "a b", "threshold": 0.4},
        {"type": "cost", "threshold": 0.5},
        {"type": "levenshtein", "value": "x"},
        {"type": "contains", "value": "x"},
        {"type": "latency"},
    ]
    ranges = compile_assertions(configs).passing_ranges()
    assert [one and (one.low, one.high, one.measures, one.negated) for one in ranges] == [
        (3, 9, "words", False),
        (0.4, None, "score", True),
        (None, 0.5, "cost", False),
        (None, 5, "characters", False),
        None,
        None,  # it has no threshold, so nothing is measured
    ]


def test_the_api_takes_assertions_as_yaml_and_names_the_lines_of_errors(db):
    path = reverse("api-evaluate")
    body = {"output": "hello", "assertions": "- {type: contains, value: hell}\n- {type: contians, value: x}"}
    answer = caller("viewer").post(path, body, format="json").json()
    assert [one["passed"] for one in answer["assertions"]] == [True, False]
    assert [(fault["path"], fault["line"]) for fault in answer["faults"]] == [("[1].type", 2)]
    broken = caller("viewer").post(path, {**body, "assertions": "- {type: ["}, format="json")
    assert broken.status_code == 200  # half-typed, not a mistake of the caller
    assert (broken.json()["passed"], broken.json()["assertions"]) == (False, [])
    assert broken.json()["faults"][0]["line"] == 2


def test_a_check_parses_the_text_once(db, monkeypatch):
    parsed = []
    parse = assertion_yaml.parse_value
    monkeypatch.setattr(assertion_yaml, "parse_value", lambda text: (parsed.append(text), parse(text))[1])
    body = {"output": "hello", "assertions": "- {type: contians, value: hell}"}
    answer = caller("viewer").post(reverse("api-evaluate"), body, format="json").json()
    assert (len(answer["faults"]), len(parsed)) == (1, 1)
    trial = Trial(**body)
    assert (len(trial.configs), len(trial.faults), trial.verdict != "passed", len(parsed)) == (1, 1, True, 2)


def test_a_backtest_by_yaml_is_refused_with_the_line(db):
    body = {
        "workflow": "asks",
        "block": "ask",
        "assertions": "- {type: is-json}\n- {type: contians, value: x}",
    }
    answer = caller("viewer").post(reverse("api-backtest"), body, format="json")
    assert answer.status_code == 400, answer.json()
    assert [(one["path"], one["line"]) for one in answer.json()["error"]["details"]] == [
        ("assertions[1].type", 2)
    ]
