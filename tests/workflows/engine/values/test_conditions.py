"""What each operator of a condition decides."""

import time
from typing import Any

import pytest

from tests.timing import PROMPTLY
from workflows_app.engine.definition import Condition, ConditionGroup
from workflows_app.engine.values.conditions import (
    OPERATOR_NAMES,
    OPERATORS,
    ConditionError,
    evaluate,
    value_problem,
)

CASES: list[tuple[str, Any, Any, bool]] = [
    ("equals", "yes", "yes", True),
    ("equals", "5", 5, True),
    ("equals", "true", True, True),
    ("equals", 1, True, False),
    ("equals", {"a": [1]}, {"a": [1.0]}, True),
    ("equals", "5", "5.0", False),
    ("not_equals", "a", "b", True),
    ("not_equals", "a", "a", False),
    ("contains", "all good", "good", True),
    ("contains", [1, 2], 2, True),
    ("contains", {"a": 1}, "a", True),
    ("contains", "all good", "bad", False),
    ("not_contains", "all good", "bad", True),
    ("not_contains", "all good", "good", False),
    ("starts_with", "PASS: fine", "PASS", True),
    ("starts_with", "not PASS", "PASS", False),
    ("ends_with", "done.", ".", True),
    ("ends_with", "done", ".", False),
    ("gt", "0.9", 0.8, True),
    ("gt", 0.8, 0.8, False),
    ("gt", True, 0, False),
    ("gte", 0.8, 0.8, True),
    ("gte", "text", 0.8, False),
    ("lt", 1, 2, True),
    ("lt", 2, 2, False),
    ("lte", 2, 2, True),
    ("lte", 3, 2, False),
    ("exists", "", None, True),
    ("exists", None, None, False),
    ("not_exists", None, None, True),
    ("not_exists", 0, None, False),
    ("is_empty", "  ", None, True),
    ("is_empty", 0, None, False),
    ("not_empty", [1], None, True),
    ("not_empty", [], None, False),
    ("regex", "order 42", r"\d+", True),
    ("regex", "order", r"\d+", False),
]


@pytest.mark.parametrize(("operator", "actual", "value", "holds"), CASES)
def test_operators_decide(operator: str, actual: Any, value: Any, holds: bool) -> None:
    condition = Condition(eval_key="x", operator=operator, value=value)
    assert evaluate(condition, {"x": actual}.__getitem__) is holds


def test_every_operator_is_tried_both_ways() -> None:
    tried = {(operator, holds) for operator, _, _, holds in CASES}
    assert tried == {(name, holds) for name in OPERATORS for holds in (True, False)}


def test_a_missing_value_counts_as_null() -> None:
    def decides(operator: str, value: Any = None) -> bool:
        return evaluate(Condition(eval_key="x", operator=operator, value=value), {}.__getitem__)

    assert decides("not_exists")
    assert decides("is_empty")
    assert not decides("gt", 0)


def test_groups_join_and_nest() -> None:
    yes = Condition(eval_key="x", operator="equals", value=1)
    no = Condition(eval_key="x", operator="equals", value=2)
    lookup = {"x": 1}.__getitem__
    either = ConditionGroup(combinator="or", conditions=(no, yes))
    assert evaluate(either, lookup)
    assert not evaluate(ConditionGroup(conditions=(no, yes)), lookup)
    assert evaluate(ConditionGroup(conditions=(yes, either)), lookup)


def test_aliases_name_known_operators() -> None:
    assert OPERATOR_NAMES["matches"] == "regex"
    assert evaluate(Condition(eval_key="x", operator=">", value=1), {"x": 2}.__getitem__)


def test_a_pattern_that_backtracks_is_stopped() -> None:
    condition = Condition(eval_key="x", operator="regex", value=r"(.*a){20}$")
    started = time.perf_counter()
    with pytest.raises(ConditionError, match="250 ms"):
        evaluate(condition, {"x": "a" * 400 + "b"}.__getitem__)
    assert time.perf_counter() - started < PROMPTLY


@pytest.mark.parametrize(
    ("operator", "value", "has_value", "message"),
    [
        ("gt", "many", True, "needs a number"),
        ("gt", None, False, "needs a value"),
        ("gt", True, True, "needs a number"),
        ("regex", "(", True, "invalid"),
        ("starts_with", "", True, "not empty"),
        ("exists", 3, True, "takes no value"),
    ],
)
def test_values_are_checked_beforehand(operator: str, value: Any, has_value: bool, message: str) -> None:
    problem = value_problem(OPERATORS[operator], value, has_value=has_value)
    assert problem is not None
    assert message in problem
