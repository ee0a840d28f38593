"""A block's output as a person reads it: JSON in colours, Markdown as a page, anything else as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from evals_app.assertions.base import BadOption
from evals_app.assertions.paths import parse_path, plain_steps
from workflows_app.engine.json_text import storable_json

SHOWN_CHARACTERS = 20_000  # more is folded, and loaded when asked for
MOST_JSON = 200_000
MOST_MARKDOWN = 50_000
DEEPEST = 60

Steps = tuple[str | int, ...]

_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|\s{0,3}[-*+] \S|\d{1,3}\. \S|> \S|```)|\*\*[^*\n]+\*\*|\]\(https?://", re.M
)


@dataclass(frozen=True)
class Output:
    """What a page prints of an output."""

    kind: str  # empty, json, markdown, text
    text: str  # as it is, perhaps only its beginning
    length: int
    rendered: SafeString | None = None

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.length

    @property
    def is_long(self) -> bool:
        """Whether it stands in a box of its own height."""
        lines = max(self.text.count("\n"), (self.rendered or "").count("\n"))
        return self.length > 4000 or lines > 40


def read_output(text: str, paths: Iterable[str] = ()) -> Output:
    """The output, with the values marked that the given JSON paths take out of it."""
    if not text:
        return Output("empty", "", 0)
    shown = text[:SHOWN_CHARACTERS]
    document = _document(text)
    if document is not None:
        marked = {steps for path in paths if (steps := locate(path, document)) is not None}
        pretty = pretty_json(document, marked)
        if len(pretty) <= 4 * SHOWN_CHARACTERS:
            return Output("json", shown, len(text), pretty)
    elif len(text) <= MOST_MARKDOWN and _MARKDOWN.search(text):
        return Output("markdown", shown, len(text), render_markdown(text))
    return Output("text", shown, len(text))


def _document(text: str) -> Any:
    """The JSON object or list that the text is; None if it is none, or too large to lay out."""
    if len(text) > MOST_JSON or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return storable_json(text)
    except ValueError:
        return None


def indented(text: str) -> str:
    """JSON with one value on a line, so that two of them can be compared line by line; other text as it is."""
    document = _document(text)
    return text if document is None else json.dumps(document, indent=2, ensure_ascii=False)


# JSON


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


def pretty_json(document: Any, marked: Iterable[Steps] = ()) -> SafeString:
    """Indented and coloured; what is marked stands in <mark>."""
    parts: list[str] = []
    _write(document, (), frozenset(marked), parts)
    return mark_safe("".join(parts))  # noqa: S308 - every value in it was escaped


def _write(value: Any, at: Steps, marked: frozenset[Steps], parts: list[str]) -> None:
    if at in marked:
        parts.append("<mark>")
    if isinstance(value, dict | list) and value and len(at) < DEEPEST:
        _write_container(value, at, marked, parts)
    else:
        parts.append(_scalar(value))
    if at in marked:
        parts.append("</mark>")


def _write_container(
    value: dict[str, Any] | list[Any], at: Steps, marked: frozenset[Steps], parts: list[str]
) -> None:
    is_map = isinstance(value, dict)
    items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    indent = "  " * (len(at) + 1)
    parts.append("{" if is_map else "[")
    for place, (key, inner) in enumerate(items):
        parts.append((",\n" if place else "\n") + indent)
        if is_map:
            parts.append(f'<span class="k">{_text(key)}</span>: ')
        _write(inner, (*at, key), marked, parts)
    parts.append("\n" + "  " * len(at) + ("}" if is_map else "]"))


def _scalar(value: Any) -> str:
    css = "s" if isinstance(value, str) else "b" if value is None or isinstance(value, bool) else "n"
    if isinstance(value, dict | list):  # empty, or too deep to lay out
        return _text(value)
    return f'<span class="{css}">{_text(value)}</span>'


def _text(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False))


# Markdown


def render_markdown(text: str) -> SafeString:
    """Markdown without raw HTML and without pictures: what a model wrote loads nothing and runs nothing."""
    return mark_safe(str(_markdown().render(text)))  # noqa: S308 - the renderer escapes, and html is off


@cache
def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    reader.core.ruler.push("below_the_page", _below_the_page)
    return reader


def _below_the_page(state: Any) -> None:
    """Headings of an output stand below the page's own; its links pass no referrer on."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noopener noreferrer nofollow")
