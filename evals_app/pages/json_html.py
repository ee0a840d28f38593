"""JSON as a person reads it: laid out, in colours, what assertions looked at marked; a long document shortened."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from jsonpath_ng import Fields, Index, This

from evals_app.assertions.base import BadOption
from evals_app.assertions.matching.json_paths import parse_path

DEEPEST = 60
# Of a document that is shortened:
MOST_ITEMS = 50  # of one list or map
MOST_LETTERS = 500  # of one text
MOST_VALUES = 2_000  # altogether

Steps = tuple[str | int, ...]


def draw_json(
    document: Any, marked: Collection[Steps] = (), *, is_shortened: bool = False
) -> tuple[SafeString, bool]:
    """The document, or enough of it to see its shape, as HTML; and whether parts are left out.

    What is marked, and the way to it, is never left out.
    """
    drawing = _Drawing(marked, is_shortened)
    drawing.value(document, ())
    # Every value in it was escaped.
    return mark_safe("".join(drawing.parts)), drawing.has_gaps  # noqa: S308


class _Drawing:
    def __init__(self, marked: Collection[Steps], is_shortened: bool) -> None:
        self.marked = frozenset(marked)
        self.ways = frozenset(steps[:length] for steps in marked for length in range(1, len(steps) + 1))
        self.is_shortened = is_shortened
        self.parts: list[str] = []
        self.put = self.parts.append
        self.values = 0
        self.has_gaps = False
        self.has_marks = False

    def value(self, value: Any, at: Steps) -> None:
        self.values += 1
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
                self.put(f'<span class="k">{self._quoted(key)}</span>: ')
            self.value(inner, (*at, key))
            next_place = place + 1
        self._gap(len(value) - next_place, indent)
        self.put("\n" + "  " * len(at) + ("}" if is_map else "]"))

    def _kept(self, value: dict[str, Any] | list[Any], at: Steps) -> Iterator[tuple[int, Any, Any]]:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for place, (key, inner) in enumerate(items):
            has_room = not self.is_shortened or (place < MOST_ITEMS and self.values < MOST_VALUES)
            if has_room or (*at, key) in self.ways:
                yield place, key, inner

    def _gap(self, count: int, indent: str) -> None:
        if count:
            self.has_gaps = True
            self.put(f'{indent}<span class="c">… {count:,} more</span>')

    def _scalar(self, value: Any) -> None:
        if isinstance(value, dict | list):  # empty, or too deep to lay out
            self.put(self._quoted(json.dumps(value, ensure_ascii=False)) if value else _escaped(value))
            return
        css = "s" if isinstance(value, str) else "b" if value is None or isinstance(value, bool) else "n"
        self.put(f'<span class="{css}">{self._quoted(value) if css == "s" else _escaped(value)}</span>')

    def _quoted(self, text: str) -> str:
        """A text as JSON writes it, perhaps only its beginning and its length."""
        if not self.is_shortened or len(text) <= MOST_LETTERS:
            return _escaped(text)
        self.has_gaps = True
        return f'{_escaped(text[:MOST_LETTERS])[:-1]}… <span class="c">{len(text):,} characters</span>'


def _escaped(value: Any) -> str:
    # Between tags a quotation mark is one: written as an entity, they would make up half of the page.
    return escape(json.dumps(value, ensure_ascii=False), quote=False)


def locate(path: str, document: Any) -> Steps | None:
    """Where in the document the first match of a JSON path is."""
    try:
        matches = parse_path(path).find(document)
    except (BadOption, RecursionError, TypeError, ValueError, KeyError, AttributeError):
        return None
    return _steps_to(matches[0]) if matches else None


def _steps_to(match: Any) -> Steps | None:
    """The keys and positions from the document to a match; None if the path computes something."""
    steps: list[str | int] = []
    while match.context is not None:
        if isinstance(match.path, Fields):
            steps += match.path.fields
        elif isinstance(match.path, Index):
            steps += [index % len(match.context.value) for index in match.path.indices]
        elif not isinstance(match.path, This):
            return None
        match = match.context
    return tuple(reversed(steps))
