"""A block's output as a person reads it: JSON in colours, Markdown as a page, anything else as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from evals_app.pages.json_html import draw_json, locate
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.values.conditions import as_text

MOST_CHARACTERS = 20_000  # of a text on a page; a longer one has its own address
MOST_JSON = 1_200_000
MOST_MARKDOWN = 50_000  # letters in which signs of it are looked for
MOST_VALUES = 20
REL = "noopener noreferrer nofollow"

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
    is_shortened: bool = False  # what is rendered

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.length

    @property
    def has_marks(self) -> bool:
        return "<mark" in (self.rendered or "")

    @property
    def is_long(self) -> bool:
        """Whether it stands in a box of its own height."""
        lines = max(self.text.count("\n"), (self.rendered or "").count("\n"))
        return self.length > 4000 or lines > 40


def read_output(text: str, paths: Iterable[str] = ()) -> Output:
    """The output, with the values marked that the JSON paths take out of it."""
    if not text:
        return Output("empty", "", 0)
    shown, is_long = text[:MOST_CHARACTERS], len(text) > MOST_CHARACTERS
    document = _document(text)
    if document is not None:
        marked = {steps for path in paths if (steps := locate(path, document)) is not None}
        return Output("json", shown, len(text), *draw_json(document, marked, is_shortened=is_long))
    if _MARKDOWN.search(text, 0, MOST_MARKDOWN):
        paragraphs = shown[: shown.rfind("\n\n") + 1 or None] if is_long else shown
        return Output("markdown", shown, len(text), render_markdown(paragraphs), is_long)
    return Output("text", shown, len(text))


def read_values(values: Mapping[str, Any]) -> list[tuple[str, Output]]:
    """The first values by name: a text as it is, anything else as JSON."""
    return [(name, read_output(as_text(value))) for name, value in islice(values.items(), MOST_VALUES)]


def read_text(text: str) -> Output:
    """A text that is shown as it is, whatever it looks like."""
    return Output("text", text[:MOST_CHARACTERS], len(text))


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


# Markdown


def render_markdown(text: str) -> SafeString:
    """Markdown without raw HTML and without pictures: what a model wrote loads nothing and runs nothing."""
    return mark_safe(str(_markdown().render(text)))  # noqa: S308 - the renderer escapes, and html is off


@cache
def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.core.ruler.push("below_the_page", _below_the_page)
    reader.add_render_rule("image", _linked_picture)
    return reader


def _linked_picture(_: Any, tokens: Sequence[Any], index: int, *__: Any) -> str:
    """A picture is named and not loaded; the reader has refused addresses that would run something."""
    address = str(tokens[index].attrGet("src") or "")
    name = tokens[index].content or address
    if sum(token.nesting for token in tokens[:index] if token.type in ("link_open", "link_close")):
        return format_html("{} (picture)", name)  # a link leads to one place
    return format_html('<a href="{}" rel="{}">{} (picture)</a>', address, REL, name)


def _below_the_page(state: Any) -> None:
    """Headings of an output stand below the page's own; its links pass no referrer on."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", REL)
