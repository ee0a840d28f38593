"""The transform `json_path:<expression>`: parsed by jsonpath-ng, then walked by ourselves to the first match.

The library's own `find` collects every match before it returns: on 50 KB that takes a hundred times as long as reading
the JSON, and a path such as `$..*..*..*` never ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
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
        try:
            value = self._find(document)
        except RecursionError:
            raise CannotCheck(f"JSON path {quote(self.expression)} recurses too deeply.") from None
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
    if len(expression) > MAX_PATTERN_LENGTH:
        raise BadOption(f"is longer than {MAX_PATTERN_LENGTH:,} characters")
    path = parse_path(expression)
    if _is_walkable(path):
        return lambda document: next(_walk(path, document, document, Deadline("The JSON path")), MISSING)
    return lambda document: next((match.value for match in path.find(document)), MISSING)


def parse_path(expression: str) -> Any:
    """Parse with jsonpath-ng's extended parser, or raise BadOption."""
    from jsonpath_ng.exceptions import JSONPathError

    # The library's lexer knows ASCII names only; in quotes it takes any.
    quoted = _QUOTED_OR_NAME.sub(
        lambda match: match[0] if match[2] is None or match[2].isascii() else f"'{match[2]}'", expression
    )
    try:
        with without_warnings():  # which also lets in only one thread at a time: the parser has state
            path = _parser().parse(quoted)
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
    _refuse_unbounded(path, expression)
    return path


@lru_cache(maxsize=1)
def _parser() -> Any:
    from jsonpath_ng.ext.parser import ExtendedJsonPathParser

    return ExtendedJsonPathParser()


def _refuse_unbounded(path: Any, expression: str) -> None:
    """Refuse what would run without a time limit."""
    parts = list(_parts(path))
    names = [_kind(part) for part in parts]
    if any(getattr(part, "op", None) == "=~" for part in parts):
        raise BadOption(
            f"{quote(expression)} uses =~, which has no time limit; use a `regex` assertion instead"
        )
    if "Sub" in names:
        raise BadOption(f"{quote(expression)} uses sub(), which has no time limit")
    if names.count("Descendants") > 1 and not _is_walkable(path):
        raise BadOption(
            f"{quote(expression)} has more than one .. beside an operator that may only follow one"
        )


def _parts(path: Any) -> Iterator[Any]:
    """Yield every node of a parsed path."""
    stack = [path]
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif hasattr(node, "find") and not isinstance(node, str):
            yield node
            stack.extend(vars(node).values())


def _kind(part: Any) -> str:
    return type(part).__name__


# Steps that look only into maps and lists, so that `..` need not visit the many plain values.
_CONTAINERS = (dict, list)
_STEPS = frozenset({"Fields", "Index", "Slice", "Wildcard"})
_WALKABLE = _STEPS | {"Root", "This", "Child", "Descendants", "Filter", "Expression", "And", "Or"}


def _is_walkable(path: Any) -> bool:
    """Say whether our walk covers every part of a path; a filter that looks at `$` needs the library's own."""
    return all(
        _kind(part) in _WALKABLE and not (_kind(part) == "Filter" and part._references_root())
        for part in _parts(path)
    )


def _walk(path: Any, value: Any, root: Any, deadline: Deadline) -> Iterator[Any]:
    """Yield what a path matches in a value, in the library's order but one at a time."""
    match _kind(path):
        case "Root":
            yield root
        case "This":
            yield value
        case "Child":
            for found in _walk(path.left, value, root, deadline):
                deadline.check()
                yield from _walk(path.right, found, root, deadline)
        case "Filter":
            for child in _children(value):
                deadline.check()
                if all(expression.find(child) for expression in path.expressions):
                    yield child
        case "Descendants":
            right = path.right
            is_step = _kind(right) in _STEPS
            for found in _walk(path.left, value, root, deadline):
                stack = [found]
                while stack:
                    node = stack.pop()
                    deadline.check()
                    yield from _step(right, node) if is_step else _walk(right, node, root, deadline)
                    children = _children(node)
                    if is_step:
                        children = [child for child in children if isinstance(child, _CONTAINERS)]
                    stack.extend(reversed(children))
        case _:
            yield from _step(path, value)


def _step(path: Any, value: Any) -> Any:
    """What a single step of a path matches in a value."""
    match type(path).__name__:
        case "Fields" if isinstance(value, dict):
            return [value[name] for name in path.fields if name in value]
        case "Index" if isinstance(value, list):
            return [value[at] for at in path.indices if -len(value) <= at < len(value)]
        case "Slice" if isinstance(value, list) and path.step != 0:
            return value[path.start : path.end : path.step]
        case "Wildcard":
            return _children(value)
    return ()


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []
