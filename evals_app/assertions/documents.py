"""Strict JSON: read whole, found in prose, compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from .limits import MAX_DEPTH, CannotCheck, Deadline


class NotJson(Exception):
    """The text is not JSON, and why."""


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_CHUNK = 1024
_TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
_TOO_LONG = "The JSON has a number with more digits than can be read."


def parse_document(text: str) -> Any:
    """Parse the whole text as strict JSON."""
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno} column {fault.colno}"
        raise NotJson(f"{fault.msg[:1].lower()}{fault.msg[1:]} at {where}") from None
    except RecursionError:
        raise CannotCheck(_TOO_DEEP) from None
    except ValueError:
        raise CannotCheck(_TOO_LONG) from None
    if _is_deep(document, text, 0, len(text)):
        raise CannotCheck(_TOO_DEEP)
    return document


def _is_deep(document: Any, text: str, start: int, end: int) -> bool:
    """Tell whether a parsed document has more levels than allowed; nearly free where it obviously has not."""
    count = text.count
    if count("[", start, end) + count("{", start, end) <= MAX_DEPTH:
        return False
    level = 0
    for at in range(start, end, _CHUNK):
        stop = min(at + _CHUNK, end)
        opened = count("[", at, stop) + count("{", at, stop)
        if level + opened > MAX_DEPTH:
            return _depth_exceeds(document)
        level += opened - count("]", at, stop) - count("}", at, stop)
    return False


def _depth_exceeds(document: Any) -> bool:
    layer = [document] if isinstance(document, dict | list) else []
    for _ in range(MAX_DEPTH):
        layer = [
            child
            for parent in layer
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


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
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
    r"|(?P<mark>[\[\]{},:]))"
)


class DocumentFinder:
    """Finds the outermost objects and arrays in a text, in time linear in its length."""

    def __init__(self, text: str, deadline: Deadline) -> None:
        self._text = text
        self._deadline = deadline
        # Failed attempts of the fast scanner may cost this many characters before the sure one takes over.
        self._patience = 2 * len(text) + 10_000
        self._extents: dict[int, tuple[int, int]] = {}
        #: Why some object or array was passed over although it is JSON.
        self.unreadable: str | None = None

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while (opener := _OPENER.search(self._text, at)) is not None:
            self._deadline.check()
            start = opener.start()
            read = self._read_fast if self._patience >= 0 else self._read_surely
            document, at = read(start)
            if document is not None:
                yield document

    def _read_fast(self, start: int) -> tuple[Any, int]:
        """Return the document at an opening bracket, or None, and where to go on."""
        text = self._text
        try:
            document, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as fault:
            # The exception counts the lines before the fault, so even its making takes time.
            self._patience -= fault.pos - start + fault.pos // 16 + 1
            return None, start + 1
        except NotJson:
            self._patience -= len(text) // 8
            return None, start + 1
        except (RecursionError, ValueError):
            document = None
        if document is None or _is_deep(document, text, start, end):
            self._patience = -1
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
        stack: list[_Open] = []
        at = start
        while (token := _TOKEN.match(self._text, at)) is not None:
            self._deadline.check()
            mark = token["mark"]
            at = token.end()
            if mark is None:
                fits = stack[-1].take_value(is_string=token["string"] is not None)
            elif mark in "{[":
                fits = not stack or stack[-1].expects_value()
                end, height = self._extents.get(at - 1, (0, 0))
                if not fits or end < 0:
                    break  # and a bracket out of place says nothing about itself
                if end == 0:
                    stack.append(_Open(at - 1, mark))
                else:
                    stack[-1].take_container(height)
                    at = end
            elif mark in "}]":
                fits = stack[-1].closes_with(mark)
                if fits:
                    closed = stack.pop()
                    self._extents[closed.start] = (at, closed.height)
                    if not stack:
                        return
                    stack[-1].take_container(closed.height)
            else:
                fits = stack[-1].take_mark(mark)
            if not fits:
                break
        for opened in stack:
            self._extents[opened.start] = (-1, 0)


class _Open:
    """A bracket whose end is not yet known, and what may come next in it."""

    __slots__ = ("_is_object", "_next", "height", "start")

    def __init__(self, start: int, mark: str) -> None:
        self.start = start
        self.height = 1
        self._is_object = mark == "{"
        # What it waits for; in the "first" states it may also end.
        self._next = "first-key" if self._is_object else "first-value"

    def expects_value(self) -> bool:
        return self._next in ("value", "first-value")

    def take_value(self, *, is_string: bool) -> bool:
        if self._next in ("value", "first-value"):
            self._next = "comma"
            return True
        if self._next in ("key", "first-key") and is_string:
            self._next = "colon"
            return True
        return False

    def take_container(self, height: int) -> None:
        self._next = "comma"
        self.height = max(self.height, height + 1)

    def take_mark(self, mark: str) -> bool:
        if mark == "," and self._next == "comma":
            self._next = "key" if self._is_object else "value"
            return True
        if mark == ":" and self._next == "colon":
            self._next = "value"
            return True
        return False

    def closes_with(self, mark: str) -> bool:
        return (mark == "}") is self._is_object and self._next in ("comma", "first-key", "first-value")
