"""`{% load runsight %}`: icons, states, links of a page to itself, and numbers with their units."""

import datetime as dt
import re
from dataclasses import replace
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from workflows_app import addresses, formats

register = template.Library()

register.filter("duration", formats.duration)
register.filter("cost", formats.cost)
register.filter("score", formats.score)
register.filter("percent", formats.percent)
register.filter("tokens", formats.count)
register.filter("metric", formats.metric)
register.filter("verdict_word", formats.verdict_word)
register.filter("untold_kind", formats.untold_kind)


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
    return addresses.address(context["request"], **{name: value}, **more)


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
