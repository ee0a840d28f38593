"""Strict JSON: read whole, found in prose, compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NoReturn

from evals_app.assertions.limits import MAX_DEPTH, CannotCheck, Deadline


class NotJson(Exception):
    """The text is not JSON, and why."""


def refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=refuse_constant)
_CHUNK = 1024
_TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
_TOO_LONG = "The JSON has a number with more digits than can be read."


def parse_document(text: str) -> Any:
    """Parse the whole text as strict JSON."""
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise NotJson(f"{error.msg[:1].lower()}{error.msg[1:]} at {where}") from None
    except RecursionError:
        raise CannotCheck(_TOO_DEEP) from None
    except ValueError:
        raise CannotCheck(_TOO_LONG) from None
    if _is_deep(document, text, 0, len(text)):
        raise CannotCheck(_TOO_DEEP)
    return document


def _is_deep(document: Any, text: str, start: int, end: int) -> bool:
    """Say whether a parsed document has more levels than allowed."""
    # Counting brackets is a hundred times as fast as visiting every value, and nearly always enough.
    depth = 0
    for at in range(start, end, _CHUNK):
        chunk = text[at : min(at + _CHUNK, end)]
        opened = chunk.count("[") + chunk.count("{")
        if depth + opened > MAX_DEPTH:
            return _has_more_levels(document)
        depth += opened - chunk.count("]") - chunk.count("}")
    return False


def _has_more_levels(document: Any) -> bool:
    level = nested_in([[document]])
    for _ in range(MAX_DEPTH):
        level = nested_in(level)
    return bool(level)


def nested_in(parents: list[Any]) -> list[Any]:
    """List the objects and arrays that are directly inside others."""
    children = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in parents)
    return [child for child in children if isinstance(child, dict | list)]


def are_equal(left: Any, right: Any) -> bool:
    """Compare two JSON values: 1 equals 1.0, true does not equal 1, the order of keys is irrelevant."""
    if left != right:
        return False
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict):
            pairs.extend((value, other[key]) for key, value in one.items())
        elif isinstance(one, list):
            pairs.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) is not isinstance(other, bool):
            return False
    return True


# What can follow an opening bracket in JSON; most brackets in prose are ruled out by this alone.
_OPENER = re.compile(r'\{[ \t\n\r]*["}]|\[[ \t\n\r]*(?:[\]\[{"0-9-]|true|false|null)')
_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r'(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<value>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
    r"|(?P<mark>[\[\]{},:]))"
)


class DocumentFinder:
    """Finds the outermost objects and arrays in a text, in time linear in its length."""

    def __init__(self, text: str, deadline: Deadline) -> None:
        self._text = text
        self._deadline = deadline
        # Failed attempts of the fast scanner may cost this many characters before the sure one takes over.
        self.patience = 2 * len(text) + 10_000
        self._extents: dict[int, tuple[int, int]] = {}
        #: Why some object or array was passed over although it is JSON.
        self.unreadable: str | None = None

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while (opener := _OPENER.search(self._text, at)) is not None:
            self._deadline.check()
            start = opener.start()
            read = self._read_fast if self.patience >= 0 else self._read_surely
            document, at = read(start)
            if document is not None:
                yield document

    def _read_fast(self, start: int) -> tuple[Any, int]:
        """Return the document at an opening bracket, or None, and where to go on."""
        text = self._text
        try:
            document, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # The exception counts the lines before the error, so even making it takes time.
            self.patience -= error.pos - start + error.pos // 16 + 1
            return None, start + 1
        except NotJson:
            self.patience -= len(text) // 8
            return None, start + 1
        except (RecursionError, ValueError):
            document = None
        if document is None or _is_deep(document, text, start, end):
            self.patience = -1
            return None, start
        return document, end

    def _read_surely(self, start: int) -> tuple[Any, int]:
        """Do the same at a cost that adds up to a few passes over the text, whatever it holds."""
        if start not in self._extents:
            self._resolve(start)
        end, height = self._extents[start]
        if height > MAX_DEPTH:
            self.unreadable = _TOO_DEEP
            return None, end
        if end < 0:
            return None, start + 1
        try:
            return _DECODER.raw_decode(self._text, start)
        except ValueError:
            self.unreadable = _TOO_LONG
            return None, end

    def _resolve(self, start: int) -> None:
        """Parse from an opening bracket with an explicit stack and note the extent of every bracket met."""
        # Of each open bracket: where it is, what was read last in it, and how many levels it has.
        starts: list[int] = []
        states: list[str] = []
        heights: list[int] = []
        at = start
        while (token := _TOKEN.match(self._text, at)) is not None:
            self._deadline.check()
            at = token.end()
            kind = token["mark"] or str(token.lastgroup)
            if kind in "{[":
                end, height = self._extents.get(at - 1, (0, 0))
                if end < 0 or (states and "value" not in _NEXT[states[-1]]):
                    break  # and a bracket out of place says nothing about itself
                if end == 0:
                    starts.append(at - 1)
                    states.append(kind)
                    heights.append(1)
                    continue
                at = end
            else:
                state = _NEXT[states[-1]].get(kind)
                if state is None:
                    break
                if state != "end":
                    states[-1] = state
                    continue
                height = heights.pop()
                states.pop()
                self._extents[starts.pop()] = (at, height)
                if not states:
                    return
            # A complete object or array is a value of the one around it.
            states[-1] = _NEXT[states[-1]]["value"]
            heights[-1] = max(heights[-1], height + 1)
        for opened in starts:
            self._extents[opened] = (-1, 0)


# What may come next in a bracket, and the state that it leads to.
_NEXT = {
    "{": {"string": "key", "}": "end"},
    "key": {":": "colon"},
    "colon": {"string": "member", "value": "member"},
    "member": {",": "next member", "}": "end"},
    "next member": {"string": "key"},
    "[": {"string": "item", "value": "item", "]": "end"},
    "item": {",": "next item", "]": "end"},
    "next item": {"string": "item", "value": "item"},
}
