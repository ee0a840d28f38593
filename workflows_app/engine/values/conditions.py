"""Conditions: the operators that choose exits and end loops."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Final

from workflows_app.engine.definition import Condition, ConditionGroup

PATTERN_TIMEOUT_SECONDS: Final = 0.25

Lookup = Callable[[str], Any]
"""Gives the value at a canonical path, or raises LookupError when there is none."""


class ConditionError(Exception):
    """A condition that could not be decided, with the reason."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One comparison; `value` says what stands on its right: nothing, anything, text, a number or a pattern."""

    name: str
    value: str
    description: str
    holds: Callable[[Any, Any], bool]
    aliases: tuple[str, ...] = ()


def _parsed(value: Any) -> Any:
    """Text that is JSON as what it says, so that "5" and 5 compare as people expect."""
    if not isinstance(value, str) or len(value) > 10_000:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _equals(actual: Any, value: Any) -> bool:
    if isinstance(actual, str) == isinstance(value, str):
        return _same(actual, value)
    return _same(_parsed(actual), _parsed(value))


def _contains(actual: Any, value: Any) -> bool:
    if isinstance(actual, list):
        return any(_equals(item, value) for item in actual)
    if isinstance(actual, dict):
        return value in actual if isinstance(value, str) else False
    return as_text(value) in as_text(actual)


def _is_empty(actual: Any, _value: Any) -> bool:
    if isinstance(actual, str):
        return not actual.strip()
    return actual is None or (isinstance(actual, (list, dict)) and not actual)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _ordered(test: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def holds(actual: Any, value: Any) -> bool:
        left, right = _number(actual), _number(value)
        return left is not None and right is not None and test(left, right)

    return holds


def _matches(actual: Any, value: Any) -> bool:
    import regex

    try:
        return regex.search(as_text(value), as_text(actual), timeout=PATTERN_TIMEOUT_SECONDS) is not None
    except TimeoutError:
        raise ConditionError(
            f"the pattern {value!r} took longer than {PATTERN_TIMEOUT_SECONDS * 1000:.0f} ms"
        ) from None
    except regex.error as error:
        raise ConditionError(f"the pattern {value!r} is invalid: {error}") from None


def as_text(value: Any) -> str:
    """A value as a block would print it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _not(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda actual, value: not holds(actual, value)


OPERATORS: Final[dict[str, Operator]] = {
    operator.name: operator
    for operator in (
        Operator(
            "equals",
            "any",
            "is the value; text that is JSON is compared as JSON with other types",
            _equals,
            ("eq", "=="),
        ),
        Operator("not_equals", "any", "is not the value", _not(_equals), ("neq", "ne", "!=")),
        Operator("contains", "any", "has the value as a part: of a text, a list, or as a key", _contains),
        Operator("not_contains", "any", "does not have the value as a part", _not(_contains)),
        Operator(
            "starts_with", "text", "begins with the value", lambda a, v: as_text(a).startswith(as_text(v))
        ),
        Operator("ends_with", "text", "ends with the value", lambda a, v: as_text(a).endswith(as_text(v))),
        Operator("gt", "number", "is a number above the value", _ordered(gt), (">",)),
        Operator("gte", "number", "is a number not below the value", _ordered(ge), (">=",)),
        Operator("lt", "number", "is a number below the value", _ordered(lt), ("<",)),
        Operator("lte", "number", "is a number not above the value", _ordered(le), ("<=",)),
        Operator("exists", "none", "is there, and not null", lambda a, _v: a is not None),
        Operator("not_exists", "none", "is missing or null", lambda a, _v: a is None),
        Operator("is_empty", "none", "is missing, null, blank, or has no items", _is_empty),
        Operator("not_empty", "none", "has something in it", _not(_is_empty), ("is_not_empty",)),
        Operator("regex", "pattern", "contains a match of the pattern", _matches, ("matches",)),
    )
}
OPERATOR_NAMES: Final[dict[str, str]] = {
    spelling: operator.name
    for operator in OPERATORS.values()
    for spelling in (operator.name, *operator.aliases)
}


def value_problem(operator: Operator, value: Any, *, has_value: bool) -> str | None:
    """What is wrong with a condition's value, if anything."""
    if operator.value == "none":
        return f"'{operator.name}' takes no value" if has_value and value is not None else None
    if not has_value:
        return f"'{operator.name}' needs a value"
    if operator.value == "number" and _number(value) is None:
        return f"'{operator.name}' needs a number, got {value!r}"
    if operator.value in ("text", "pattern") and (isinstance(value, (list, dict)) or not as_text(value)):
        return f"'{operator.name}' needs a text that is not empty"
    return _pattern_problem(as_text(value)) if operator.value == "pattern" else None


def _pattern_problem(pattern: str) -> str | None:
    import regex

    try:
        re.compile(pattern)
        regex.compile(pattern)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        return f"the pattern {pattern[:60]!r} is invalid: {error}"
    return None


def evaluate(condition: Condition | ConditionGroup, lookup: Lookup) -> bool:
    """Whether a condition holds; a path without a value counts as null."""
    if isinstance(condition, ConditionGroup):
        join = any if condition.combinator == "or" else all
        return join(evaluate(part, lookup) for part in condition.conditions)
    try:
        actual = lookup(condition.eval_key)
    except LookupError:
        actual = None
    return OPERATORS[OPERATOR_NAMES[condition.operator]].holds(actual, condition.value)
