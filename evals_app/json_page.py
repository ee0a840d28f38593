"""JSON as a person reads it: laid out, in colours, what assertions looked at marked; of much, enough to see its shape."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from evals_app.assertions.base import BadOption
from evals_app.assertions.paths import parse_path, plain_steps

DEEPEST = 60
EVERYTHING = 10**9
#: How many items of a list or map and letters of a text are drawn: all, or ever fewer until it fits.
MEASURES = ((EVERYTHING, EVERYTHING), (200, 2_000), (50, 500), (20, 200), (8, 100), (3, 60))

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Drawn:
    """A document as HTML, and whether parts of it are left out."""

    html: SafeString
    is_shortened: bool


def draw_json(document: Any, marked: Collection[Steps] = (), most_bytes: int = EVERYTHING) -> Drawn | None:
    """The document in as many bytes as it may take; what is marked, and the way to it, is never left out.

    None if not even its shape fits.
    """
    for most_items, most_letters in MEASURES:
        drawing = _Drawing(marked, most_bytes, most_items, most_letters)
        try:
            drawing.value(document, ())
        except _TooHeavy:
            continue
        # Every value in it was escaped.
        return Drawn(mark_safe("".join(drawing.parts)), drawing.is_shortened)  # noqa: S308
    return None


class _TooHeavy(Exception):
    """There is no room for what comes next."""


class _Drawing:
    def __init__(
        self, marked: Collection[Steps], most_bytes: int, most_items: int, most_letters: int
    ) -> None:
        self.marked = frozenset(marked)
        self.ways = frozenset(steps[:length] for steps in marked for length in range(1, len(steps) + 1))
        self.room = most_bytes
        self.most_items = most_items
        self.most_letters = most_letters
        self.parts: list[str] = []
        self.is_shortened = False
        self.has_marks = False

    def put(self, html: str) -> None:
        self.room -= len(html.encode())
        if self.room < 0:
            raise _TooHeavy
        self.parts.append(html)

    def value(self, value: Any, at: Steps) -> None:
        is_marked = at in self.marked
        if is_marked:
            self.put("<mark>" if self.has_marks else '<mark id="looked-at">')
            self.has_marks = True
        if isinstance(value, dict | list) and value and len(at) < DEEPEST:
            self._container(value, at)
        else:
            self._scalar(value)
        if is_marked:
            self.put("</mark>")

    def _container(self, value: dict[str, Any] | list[Any], at: Steps) -> None:
        is_map = isinstance(value, dict)
        indent = "\n" + "  " * (len(at) + 1)
        self.put("{" if is_map else "[")
        next_place = 0
        for place, key, inner in self._kept(value, at):
            self._gap(place - next_place, indent)
            self.put(("," if next_place else "") + indent)
            if is_map:
                self.put(f'<span class="k">{_text(key)}</span>: ')
            self.value(inner, (*at, key))
            next_place = place + 1
        self._gap(len(value) - next_place, indent)
        self.put("\n" + "  " * len(at) + ("}" if is_map else "]"))

    def _kept(self, value: dict[str, Any] | list[Any], at: Steps) -> Iterator[tuple[int, Any, Any]]:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for place, (key, inner) in enumerate(items):
            if place < self.most_items or (*at, key) in self.ways:
                yield place, key, inner

    def _gap(self, count: int, indent: str) -> None:
        if count:
            self.is_shortened = True
            self.put(f'{indent}<span class="c">… {count:,} more</span>')

    def _scalar(self, value: Any) -> None:
        if isinstance(value, dict | list):  # empty, or too deep to lay out
            self.put(_text(value))
        elif isinstance(value, str) and len(value) > self.most_letters:
            self.is_shortened = True
            self.put(f'<span class="s">{_text(value[: self.most_letters])[:-1]}…</span>')
            self.put(f' <span class="c">{len(value):,} characters</span>')
        else:
            css = "s" if isinstance(value, str) else "b" if value is None or isinstance(value, bool) else "n"
            self.put(f'<span class="{css}">{_text(value)}</span>')


def _text(value: Any) -> str:
    # Between tags a quotation mark is one: written as an entity, they would make up half of the page.
    return escape(json.dumps(value, ensure_ascii=False), quote=False)


def locate(path: str, document: Any) -> Steps | None:
    """Where in the document the first match of a JSON path is."""
    steps = plain_steps(path)
    if steps is None:
        try:
            matches = parse_path(path).find(document)
        except (BadOption, RecursionError, TypeError, ValueError, KeyError, AttributeError):
            return None
        steps = _steps_of(matches[0].full_path) if matches else None
    return None if steps is None else _resolved(steps, document)


def _steps_of(path: Any) -> Steps | None:
    name = type(path).__name__
    if name == "Child":
        left, right = _steps_of(path.left), _steps_of(path.right)
        return None if left is None or right is None else (*left, *right)
    if name == "Fields":
        return tuple(path.fields)
    if name == "Index":
        return tuple(path.indices)
    return () if name in ("Root", "This") else None


def _resolved(steps: Steps, value: Any) -> Steps | None:
    """The steps with positions counted from the front; None if they lead nowhere."""
    found: list[str | int] = []
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict) and step in value:
            found.append(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            found.append(step % len(value))
        else:
            return None
        value = value[step]
    return tuple(found)
