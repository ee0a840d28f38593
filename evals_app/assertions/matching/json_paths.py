"""The transform `json_path:<expression>`: parsed by jsonpath-ng, then walked by ourselves to the first match.

The library's own `find` collects every match before it returns: on 50 KB that takes a hundred times as long as reading
the JSON, and a path such as `$..*..*..*` never ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from evals_app.assertions.base import BadOption
from evals_app.assertions.context import CheckedOutput
from evals_app.assertions.limits import MAX_PATTERN_LENGTH, CannotCheck, Deadline
from evals_app.assertions.matching.json_documents import NotJson
from evals_app.assertions.matching.patterns import quote, without_warnings
from evals_app.assertions.options import describe

#: What a search returns when nothing matches.
MISSING: Any = object()
_PREFIX = "json_path:"
_QUOTED_OR_NAME = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|([^\W\d](?:[\w@-]*))""", re.DOTALL
)


# A quote of the other kind, or an escape, in a name between single quotes, and how it is written between double ones.
_SINGLE = re.compile(r'\\.|"', re.DOTALL)
_AS_DOUBLE = {"\\'": "'", '"': '\\"', '\\"': "\\'"}
_LEADING_ZERO = re.compile(r"(?<![\w@-])(?<!\d\.)-?0\d|[\[,:]\s*-0\s*[\],:]")


class JsonPath:
    """Takes the first match of a path out of an output."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._find = compile_path(expression)

    def apply(self, output: CheckedOutput) -> CheckedOutput:
        """Return the part to check: a string as it is, anything else as JSON text."""
        try:
            return output.part(f"{_PREFIX}{self.expression}", self._extract)
        except NotJson as error:
            raise CannotCheck(
                f"Transform {quote(self.expression)} needs JSON, but the output is not: {error}."
            ) from None

    def _extract(self, document: Any) -> str:
        value = self._find(document)
        if value is MISSING:
            raise CannotCheck(f"JSON path {quote(self.expression)} matches nothing in the output.")
        if isinstance(value, str):
            return value
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise CannotCheck(f"What JSON path {quote(self.expression)} found has no JSON text.") from None


class Transform:
    """A transform, by name: `json_path:<expression>`."""

    name = "transform"

    def parse(self, raw: Any) -> JsonPath:
        if not isinstance(raw, str):
            raise BadOption(f"must be text such as 'json_path:$.answer', not {describe(raw)}")
        if not raw.startswith(_PREFIX):
            raise BadOption(f"{quote(raw)} is unknown; the only transform is 'json_path:<expression>'")
        return _load_path(raw[len(_PREFIX) :].strip())


_load_path = lru_cache(maxsize=2048)(JsonPath)


def compile_path(expression: str) -> Callable[[Any], Any]:
    """Return a function that finds the first match of a path in a document, or raise BadOption."""
    if not expression:
        raise BadOption("has no path after 'json_path:'")
    steps = _compile(parse_path(expression), expression)
    return lambda document: next(_walk(steps, document, _Walk(document)), MISSING)


def parse_path(expression: str) -> Any:
    """Parse with jsonpath-ng's extended parser, or raise BadOption, also for what our walk does not do."""
    from jsonpath_ng.exceptions import JSONPathError

    if len(expression) > MAX_PATTERN_LENGTH:
        raise BadOption(f"is longer than {MAX_PATTERN_LENGTH:,} characters")
    spelled = _QUOTED_OR_NAME.sub(_spell, expression)
    if _LEADING_ZERO.search(_QUOTED_OR_NAME.sub("_", expression)):
        raise BadOption(f"{quote(expression)} has a number that begins with a needless 0")
    try:
        with without_warnings():  # which also lets in only one thread at a time: the parser has state
            path = _parser().parse(spelled)
    except (
        JSONPathError,
        RecursionError,
        ValueError,
        AssertionError,
        TypeError,
        AttributeError,
        IndexError,
    ) as error:
        raise BadOption(f"{quote(expression)} is not a JSON path: {error}") from None
    _compile(path, expression)
    return path


@lru_cache(maxsize=1)
def _parser() -> Any:
    from jsonpath_ng.ext.parser import ExtendedJsonPathParser

    return ExtendedJsonPathParser()


def _spell(match: re.Match[str]) -> str:
    """Write a name so that the library's lexer, which knows ASCII names and no escapes, reads the right one."""
    text = match[0]
    if match[2] is not None:
        return text if text.isascii() else f"'{text}'"
    mark = text[0]
    if mark == "`":
        return text
    try:
        # JSON's rules for escapes and control characters are those of JSON paths, but for the single quote.
        inner = (
            text[1:-1] if mark == '"' else _SINGLE.sub(lambda one: _AS_DOUBLE.get(one[0], one[0]), text[1:-1])
        )
        name = json.loads(f'"{inner}"')
        name.encode()
    except ValueError:
        raise BadOption(f"{quote(text)} in the path has a control character or an unknown escape") from None
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class _Walk:
    """What all steps of one search share."""

    __slots__ = ("deadline", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.deadline = Deadline("The JSON path")


#: What a value leads to, one step further.
_Step = Callable[[Any, _Walk], Iterable[Any]]
_Test = Callable[[Any, _Walk], bool]


def _walk(steps: list[_Step], value: Any, walk: _Walk) -> Iterator[Any]:
    """Yield what the steps lead to, in the library's order but one at a time, and without recursion."""
    pending: list[Iterator[Any]] = [iter((value,))]
    while pending:
        walk.deadline.check()
        found = next(pending[-1], MISSING)
        if found is MISSING:
            pending.pop()
        elif len(pending) > len(steps):
            yield found
        else:
            pending.append(iter(steps[len(pending) - 1](found, walk)))


def _compile(path: Any, expression: str, depth: int = 0) -> list[_Step]:
    """Turn a parsed path into steps, or raise BadOption for what cannot be one."""
    if depth > _MAX_FILTER_DEPTH:
        raise BadOption(f"{quote(expression)} has filters more than {_MAX_FILTER_DEPTH} deep")
    steps: list[_Step] = []
    pending = [path]
    while pending:
        part = pending.pop()
        match _kind(part):
            case "Child":
                pending += (part.right, part.left)
            case "Descendants":
                pending += (part.right, _Everything(part.right), part.left)
            case "_Everything":
                steps.append(_containers_within if part.only_containers else _all_within)
            case "Root" if not steps:
                steps.append(lambda value, walk: (walk.root,))
            case "This":
                pass
            case "Len":
                steps.append(
                    lambda value, walk: (len(value),) if isinstance(value, dict | list | str) else ()
                )
            case "Keys":
                steps.append(lambda value, walk: value if isinstance(value, dict) else ())
            case "Fields" | "Index" | "Slice" | "Wildcard":
                steps.append(partial(_step, part))
            case "Union":
                left = _compile(part.left, expression, depth + 1)
                right = _compile(part.right, expression, depth + 1)
                steps.append(partial(_union, left, right))
            case "Filter":
                tests = [_test(one, expression, depth + 1) for one in part.expressions]
                steps.append(partial(_filter, tests))
            case kind:
                what = _REFUSED.get(kind, kind.lower())
                raise BadOption(f"{quote(expression)} uses {what}, which is not possible here")
    return steps


class _Everything:
    """Stands for a value and everything in it, of which the part that follows may need only maps and lists."""

    def __init__(self, following: Any) -> None:
        self.only_containers = _kind(following) in _STEPS


def _test(part: Any, expression: str, depth: int) -> _Test:
    """Turn a condition of a filter into a function."""
    kind = _kind(part)
    if kind in ("And", "Or"):
        tests = [_test(one, expression, depth + 1) for one in part.operands]
        decide = all if kind == "And" else any
        return lambda value, walk: decide(test(value, walk) for test in tests)
    if kind != "Expression":
        raise BadOption(f"{quote(expression)} has a filter that compares nothing")
    if part.op == "=~":
        raise BadOption(
            f"{quote(expression)} uses =~, which has no time limit; use a `regex` assertion instead"
        )
    target = _compile(part.target, expression, depth)
    if part.op in (None, "!"):
        wanted = part.op is None
        return lambda value, walk: (next(_walk(target, value, walk), MISSING) is not MISSING) is wanted
    if hasattr(part.value, "find") and not isinstance(part.value, str):
        other = _compile(part.value, expression, depth)
        return lambda value, walk: _compare(
            part.op, _walk(target, value, walk), list(_walk(other, value, walk)), walk
        )
    return lambda value, walk: _compare(part.op, _walk(target, value, walk), [part.value], walk)


def _compare(op: Any, found: Iterator[Any], others: list[Any], walk: _Walk) -> bool:
    """Say whether any value found compares with any other, by the rules of RFC 9535."""
    from jsonpath_ng.ext.filter import EQUALITY_ONLY_OPERATOR_MAP
    from jsonpath_ng.ext.filter import _compare as compare

    is_empty = True
    for value in found:
        is_empty = False
        for other in others:
            walk.deadline.check()
            if compare(op, value, other):
                return True
    if is_empty or not others:
        return bool(EQUALITY_ONLY_OPERATOR_MAP[op](is_empty and not others))
    return False


def _kind(part: Any) -> str:
    name = type(part).__name__
    return "Union" if name == "_Union" else name


# Steps that look only into maps and lists, so that `..` need not visit the many plain values.
_STEPS = frozenset({"Fields", "Index", "Slice", "Wildcard"})
_MAX_FILTER_DEPTH = 10
_REFUSED = {
    "Root": "$ inside",
    "Operation": "arithmetic",
    "Parent": "`parent`",
    "Sub": "sub()",
    "Split": "split()",
    "Str": "str()",
    "SortedThis": "sorting",
    "_Intersect": "&",
    "Where": "where",
    "WhereNot": "wherenot",
}


def _step(part: Any, value: Any, walk: _Walk) -> Iterable[Any]:
    """What a single step of a path matches in a value."""
    match type(part).__name__:
        case "Fields" if isinstance(value, dict):
            return [value[name] for name in part.fields if name in value]
        case "Index" if isinstance(value, list):
            return [value[at] for at in part.indices if -len(value) <= at < len(value)]
        case "Slice" if isinstance(value, list) and part.step != 0:
            found: list[Any] = value[part.start : part.end : part.step]
            return found
        case "Wildcard":
            return _children(value)
    return ()


def _union(left: list[_Step], right: list[_Step], value: Any, walk: _Walk) -> Iterator[Any]:
    yield from _walk(left, value, walk)
    yield from _walk(right, value, walk)


def _filter(tests: list[_Test], value: Any, walk: _Walk) -> Iterator[Any]:
    for child in _children(value):
        walk.deadline.check()
        if all(test(child, walk) for test in tests):
            yield child


def _all_within(value: Any, walk: _Walk) -> Iterator[Any]:
    pending = [value]
    while pending:
        walk.deadline.check()
        node = pending.pop()
        yield node
        pending.extend(reversed([*_children(node)]))


def _containers_within(value: Any, walk: _Walk) -> Iterator[Any]:
    pending = [value]
    while pending:
        walk.deadline.check()
        node = pending.pop()
        yield node
        pending.extend(reversed([child for child in _children(node) if isinstance(child, dict | list)]))


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []
