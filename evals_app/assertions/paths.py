"""JSON paths: plain ones followed directly, all others parsed by jsonpath-ng and walked for their first match."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from .base import BadOption
from .limits import MAX_PATTERN_LENGTH, Deadline
from .patterns import shorten

#: What a search returns when nothing matches.
MISSING: Any = object()
_parse_lock = threading.Lock()

Find = Callable[[Any], Any]


def compile_path(expression: str) -> Find:
    """Return a function that finds the first match of a path in a document, or raise BadOption."""
    if not expression:
        raise BadOption("has no path after 'json_path:'")
    if len(expression) > MAX_PATTERN_LENGTH:
        raise BadOption(f"is longer than {MAX_PATTERN_LENGTH:,} characters")
    steps = plain_steps(expression)
    return _follow(steps) if steps is not None else _first_match(parse_path(expression))


# Plain paths, of names and positions only, need no library

_PLAIN_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<index>-?[0-9]{1,9})\]|\[(?:'(?P<single>[^'\\]*)'|"(?P<double>[^"\\]*)")\]"""
)
_RESERVED = frozenset({"where", "wherenot"})


def plain_steps(expression: str) -> tuple[str | int, ...] | None:
    """Split a path of names and positions into its steps; None when it has anything else."""
    if not expression.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(expression):
        step = _PLAIN_STEP.match(expression, at)
        if step is None or step["name"] in _RESERVED:
            return None
        kind = step.lastgroup
        steps.append(int(step["index"]) if kind == "index" else step[kind or 0])
        at = step.end()
    return tuple(steps)


def _follow(steps: tuple[str | int, ...]) -> Find:
    def find(value: Any) -> Any:
        for step in steps:
            if isinstance(step, str):
                if type(value) is not dict:
                    return MISSING
                value = value.get(step, MISSING)
                if value is MISSING:
                    return MISSING
            else:
                if type(value) is not list or not -len(value) <= step < len(value):
                    return MISSING
                value = value[step]
        return value

    return find


# Everything else is parsed by jsonpath-ng and walked lazily, for its first match only

_QUOTED_OR_FOREIGN = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|([^\W\d](?:[\w@-]*))""", re.DOTALL
)


def parse_path(expression: str) -> Any:
    """Parse with jsonpath-ng's extended parser, or raise BadOption."""
    from jsonpath_ng.exceptions import JSONPathError

    # The library's lexer knows ASCII names only; in quotes it takes any.
    spelled = _QUOTED_OR_FOREIGN.sub(_quote_foreign_name, expression)
    try:
        # Deprecated spellings warn from inside the parser; they work, and their users could not see it.
        with _parse_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = _parser().parse(spelled)
    except (
        JSONPathError,
        RecursionError,
        ValueError,
        AssertionError,
        TypeError,
        AttributeError,
        IndexError,
    ) as fault:
        raise BadOption(f"{shorten(expression)} is not a JSON path: {fault}") from None
    _refuse_unbounded(path, expression)
    return path


@lru_cache(maxsize=1)
def _parser() -> Any:
    """Return the library's parser, made once; it has state, so only one may parse at a time."""
    from jsonpath_ng.ext.parser import ExtendedJsonPathParser

    return ExtendedJsonPathParser()


def _quote_foreign_name(match: re.Match[str]) -> str:
    name = match[2]
    return match[0] if name is None or name.isascii() else f"'{name}'"


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


def _parts_are(path: Any, names: frozenset[str]) -> bool:
    return all(type(part).__name__ in names for part in _parts(path))


def _refuse_unbounded(path: Any, expression: str) -> None:
    """Refuse what would run without a time limit."""
    names = [type(part).__name__ for part in _parts(path)]
    if any(getattr(part, "op", None) == "=~" for part in _parts(path)):
        raise BadOption(
            f"{shorten(expression)} uses =~, which has no time limit; use a `regex` assertion instead"
        )
    if "Sub" in names:
        raise BadOption(f"{shorten(expression)} uses sub(), which has no time limit")
    if names.count("Descendants") > 1 and not _is_walkable(path):
        raise BadOption(
            f"{shorten(expression)} has more than one .. beside an operator that may only follow one"
        )


def _first_match(path: Any) -> Find:
    if not _is_walkable(path):
        return lambda document: next((match.value for match in path.find(document)), MISSING)
    walk = _walk(path)

    def find(document: Any) -> Any:
        return next(walk(document, _Walk(document)), MISSING)

    return find


def _is_walkable(path: Any) -> bool:
    """Tell whether our walk covers every part of a path; a filter that looks at `$` needs the library's own."""
    name = type(path).__name__
    if name == "Filter":
        return not path._references_root() and _parts_are(path.expressions, _IN_FILTERS)
    if name not in _WALKS:
        return False
    return all(_is_walkable(getattr(path, side)) for side in ("left", "right") if hasattr(path, side))


class _Walk:
    """What one walk through a document needs: where it began, and when it must end."""

    __slots__ = ("deadline", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.deadline = Deadline("The JSON path")


Walker = Callable[[Any, _Walk], Iterator[Any]]


def _walk(path: Any) -> Walker:
    """Turn a parsed path into a generator of its matches, in the library's order but one at a time."""
    return _WALKS[type(path).__name__](path)


def _walk_root(path: Any) -> Walker:
    return lambda value, walk: iter((walk.root,))


def _walk_this(path: Any) -> Walker:
    return lambda value, walk: iter((value,))


def _walk_child(path: Any) -> Walker:
    left, right = _walk(path.left), _walk(path.right)

    def child(value: Any, walk: _Walk) -> Iterator[Any]:
        for found in left(value, walk):
            walk.deadline.check()
            yield from right(found, walk)

    return child


def _walk_fields(path: Any) -> Walker:
    fields = path.fields

    def named(value: Any, walk: _Walk) -> Iterator[Any]:
        if isinstance(value, dict):
            for field in fields:
                if field in value:
                    yield value[field]

    return named


def _walk_index(path: Any) -> Walker:
    indices = path.indices

    def at(value: Any, walk: _Walk) -> Iterator[Any]:
        if isinstance(value, list):
            for index in indices:
                if -len(value) <= index < len(value):
                    yield value[index]

    return at


def _walk_wildcard(path: Any) -> Walker:
    return lambda value, walk: iter(_children(value))


def _walk_slice(path: Any) -> Walker:
    part = slice(path.start, path.end, path.step)

    def sliced(value: Any, walk: _Walk) -> Iterator[Any]:
        if isinstance(value, list) and part.step != 0:
            for index in range(len(value))[part]:
                yield value[index]

    return sliced


def _walk_descendants(path: Any) -> Walker:
    left, right = _walk(path.left), _walk(path.right)
    reach = _named_below(path.right.fields) if type(path.right).__name__ == "Fields" else _below(right)

    def descendants(value: Any, walk: _Walk) -> Iterator[Any]:
        for found in left(value, walk):
            yield from reach(found, walk)

    return descendants


def _below(right: Walker) -> Walker:
    """Match in a value and everything in it, from the top down."""

    def below(value: Any, walk: _Walk) -> Iterator[Any]:
        stack = [value]
        while stack:
            node = stack.pop()
            walk.deadline.check()
            yield from right(node, walk)
            stack.extend(reversed(_children(node)))

    return below


def _named_below(names: tuple[str, ...]) -> Walker:
    """Do the same for names, which are found in maps only: the many plain values need no visit."""

    def below(value: Any, walk: _Walk) -> Iterator[Any]:
        stack = [value]
        visited = 0
        while stack:
            node = stack.pop()
            visited += 1
            if not visited & 63:
                walk.deadline.check()
            if type(node) is dict:
                for name in names:
                    if name in node:
                        yield node[name]
                children = [child for child in node.values() if type(child) in _CONTAINERS]
            elif type(node) is list:
                children = [child for child in node if type(child) in _CONTAINERS]
            else:
                return
            if children:
                children.reverse()
                stack.extend(children)

    return below


def _walk_filter(path: Any) -> Walker:
    tests = [_test(expression) for expression in path.expressions]

    def filtered(value: Any, walk: _Walk) -> Iterator[Any]:
        for child in _children(value):
            walk.deadline.check()
            if all(test(child) for test in tests):
                yield child

    return filtered


def _test(expression: Any) -> Callable[[Any], bool]:
    """Turn one condition of a filter into a predicate; the library's own where it is not a plain comparison."""
    from jsonpath_ng.ext.filter import EQUALITY_ONLY_OPERATOR_MAP, OPERATOR_MAP

    steps = _relative_steps(getattr(expression, "target", None))
    op, wanted = getattr(expression, "op", None), getattr(expression, "value", None)
    kinds = _ORDERED.get(type(wanted))
    if steps is None or op not in OPERATOR_MAP or kinds is None:
        return lambda child: bool(expression.find(child))
    find, compare, same = _follow(steps), OPERATOR_MAP[op], EQUALITY_ONLY_OPERATOR_MAP[op]

    def holds(child: Any) -> bool:
        value = find(child)
        if value is MISSING:
            return bool(op == "!=")
        return bool(compare(value, wanted) if type(value) in kinds else same(False))

    return holds


def _relative_steps(target: Any) -> tuple[str | int, ...] | None:
    """Return the steps of a target such as `@.a[0]`, or None when it is more than that."""
    name = type(target).__name__
    if name == "This":
        return ()
    if name == "Child":
        left, right = _relative_steps(target.left), _relative_steps(target.right)
        return None if left is None or right is None else (*left, *right)
    if name == "Fields" and len(target.fields) == 1:
        return tuple(target.fields)
    if name == "Index" and len(target.indices) == 1:
        return tuple(target.indices)
    return None


# Which values a literal can be compared with, beyond being unequal.
_ORDERED = {str: frozenset({str}), int: frozenset({int, float}), float: frozenset({int, float})}


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_CONTAINERS = frozenset({dict, list})
_WALKS: dict[str, Callable[[Any], Walker]] = {
    "Root": _walk_root,
    "This": _walk_this,
    "Child": _walk_child,
    "Fields": _walk_fields,
    "Index": _walk_index,
    "Wildcard": _walk_wildcard,
    "Descendants": _walk_descendants,
    "Slice": _walk_slice,
    "Filter": _walk_filter,
}
_IN_FILTERS = frozenset({*_WALKS, "Expression", "And", "Or"})
