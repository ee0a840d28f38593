"""`{% load runsight %}`: icons, states, links of a page to itself, and numbers with their units."""

import datetime as dt
import re
from dataclasses import replace
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from workflows_app.display import formats, querystring

register = template.Library()

register.filter("duration", formats.duration)
register.filter("cost", formats.cost)
register.filter("score", formats.score)
register.filter("percent", formats.percent)
register.filter("tokens", formats.count)
register.filter("metric", formats.metric)
register.filter("short_hash", formats.short_hash)
register.filter("verdict_word", formats.verdict_word)
register.filter("kind_not_in_message", formats.kind_not_in_message)


@register.simple_tag
def icon(name: str, label: str = "", css: str = "") -> SafeString:
    """One drawing of the icon sprite; without a label it is decoration and hidden from readers."""
    role = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    classes = f"icon {css}".strip()
    href = f"{static('img/icons.svg')}#{name}"
    return format_html('<svg class="{}" {}><use href="{}"/></svg>', classes, role, href)


@register.simple_tag(takes_context=True)
def address(context: template.Context, name: str, value: object, **more: object) -> str:
    """The query of this page with one thing changed, and what goes with it."""
    return querystring.address(context["request"], **{name: value}, **more)


@register.simple_tag
def columns(*names: str, select: bool = False) -> SafeString:
    """The head of a table. `#Cost` is a column of numbers; the name of `-Actions` is only read aloud."""
    cells = [
        SafeString('<th scope="col" class="table__select"><span class="visually-hidden">Select</span></th>')
    ]
    for name in filter(None, names):
        form = {
            "#": '<th scope="col" class="num">{}</th>',
            "-": '<th scope="col"><span class="visually-hidden">{}</span></th>',
        }.get(name[0], '<th scope="col">{}</th>')
        cells.append(format_html(form, name.lstrip("#-")))
    return format_html("<thead><tr>{}</tr></thead>", SafeString("".join(cells if select else cells[1:])))


NOTE_ICONS = {"": "info", "good": "passed", "warn": "warning", "bad": "failed"}


@register.simple_block_tag
def note(content: str, tone: str = "", drawing: str = "", role: str = "", css: str = "") -> SafeString:
    """A remark in a frame: plain, good, warn or bad."""
    return format_html(
        '<div class="note{}{}"{}>{}<div>{}</div></div>',
        f" note--{tone}" if tone else "",
        f" {css}" if css else "",
        format_html(' role="{}"', role) if role else "",
        icon(drawing or NOTE_ICONS[tone]),
        content,
    )


@register.simple_block_tag
def nothing(
    content: str, drawing: str, title: str, level: int = 2, css: str = "", *, is_card: bool = False
) -> SafeString:
    """What stands where a list or a chart would be empty: why, and what to do."""
    html = format_html(
        '<div class="empty{}">{}<h{}>{}</h{}>{}</div>',
        f" {css}" if css else "",
        icon(drawing),
        level,
        title,
        level,
        content,
    )
    return format_html('<div class="card">{}</div>', html) if is_card else html


@register.simple_block_tag
def card(content: str, title: str, id: str = "", level: int = 2) -> SafeString:
    """A card with nothing but a title in its head."""
    anchor = format_html(' id="{}"', id) if id else ""
    head = format_html("<h{}{}>{}</h{}>", level, anchor, title, level)
    return format_html('<div class="card"><div class="card__head">{}</div>{}</div>', head, content)


@register.simple_block_tag
def fold(content: str, summary: str, css: str = "", *, is_open: bool = False) -> SafeString:
    """A text that is folded away until a reader opens it."""
    return format_html(
        '<details class="fold{}"{}><summary>{}</summary><div class="fold__body">{}</div></details>',
        f" {css}" if css else "",
        " open" if is_open else "",
        summary,
        content,
    )


@register.inclusion_tag("site/_post_button.html")
def post_button(
    words: str, view: str, *args: object, icon: str = "", css: str = "", **fields: object
) -> dict[str, object]:
    """A button that posts to a view, with the fields as hidden inputs."""
    action = reverse(view, args=args)
    return {"action": action, "words": words, "icon": icon, "css": css, "fields": fields}


@register.simple_tag
def status(word: str | None, css: str = "") -> SafeString:
    """The badge of a run's or a node's state."""
    return _badge(formats.STATUSES, word or "pending", css)


@register.simple_tag
def verdict(value: Any, css: str = "") -> SafeString:
    """The badge of a verdict: a boolean, `passed`, `failed`, `error`, or nothing."""
    return _badge(formats.VERDICTS, formats.verdict_word(value), css)


def _badge(table: dict[str, tuple[str, str, str]], word: str, css: str) -> SafeString:
    label, drawing, tone = table.get(word, (word.replace("_", " ").capitalize(), "none", "idle"))
    spin = "icon--spin" if word == "running" else ""
    return format_html(
        '<span class="badge badge--{}{}" data-word="{}">{}{}</span>',
        tone,
        f" {css}" if css else "",
        word,
        icon(drawing, css=spin),
        label,
    )


@register.filter
def inline_code(text: str) -> SafeString:
    """A sentence whose `words in backticks` are code."""
    parts = re.split(r"`([^`]*)`", str(text))  # a lone backtick is one
    return SafeString(
        "".join(
            f"<code>{escape(part)}</code>" if index % 2 else escape(part) for index, part in enumerate(parts)
        )
    )


ARROWS = {"up": "arrow-up", "down": "arrow-down", "same": "equal"}


@register.filter
def delta(value: formats.Number | None, name: str = "score") -> SafeString:
    """A signed difference with an arrow, and a colour that knows whether more is better."""
    if value is None:
        return format_html('<span class="delta delta--same">{}</span>', formats.MISSING)
    return _drawn(formats.change(value, name))


@register.filter
def shift(value: formats.Number, name: str) -> SafeString:
    """A signed difference with an arrow that nothing says to be better or worse."""
    return _drawn(replace(formats.change(value, name), verdict="neutral"))


def _drawn(change: formats.Change) -> SafeString:
    spoken = "" if change.verdict in ("same", "neutral") else f" {change.verdict}"
    return format_html(
        '<span class="delta delta--{}">{}{}<span class="visually-hidden">{}</span></span>',
        change.verdict,
        icon(ARROWS[change.direction]),
        change.text,
        spoken,
    )


@register.filter
def ago(moment: dt.datetime | None) -> SafeString:
    """A relative time that stays current (time.js), with the exact one on hover."""
    if moment is None:
        return format_html('<span class="faint">{}</span>', formats.MISSING)
    utc = moment.astimezone(dt.UTC)
    return format_html(
        '<time class="nowrap" datetime="{}" title="{}" data-relative>{}</time>',
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        formats.relative_time(utc, timezone.now()),
    )
