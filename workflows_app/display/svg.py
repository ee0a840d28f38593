"""SVG as text: elements whose attributes and contents are always escaped."""

import re
from functools import cache
from html import escape

from django.utils.safestring import SafeString

# What XML 1.0 cannot hold even escaped: controls, lone surrogates, two non-characters.
_BAD = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff"
_UNPRINTABLE = re.compile(f"[{_BAD}]")
_NEEDS_CARE = re.compile(f"[<>&\"'{_BAD}]")

Value = str | int | float | bool | None


def text(value: object) -> SafeString:
    """Any text, harmless inside an element or an attribute."""
    words = str(value)
    if _NEEDS_CARE.search(words):
        words = escape(_UNPRINTABLE.sub("\ufffd", words))
    return SafeString(words)


def number(value: float) -> str:
    """A coordinate with at most two digits, and no more than needed."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def element(name: str, /, *children: object, **attributes: Value) -> SafeString:
    """One element: `class_` is class, `data_x` is data-x; what is None, and attributes of False, are left out."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = number(value) if isinstance(value, float) else text("" if value is True else value)
        parts.append(f'{_attribute_name(key)}="{shown}"')
    inside = "".join(
        child if isinstance(child, SafeString) else text(child) for child in children if child is not None
    )
    opened = " ".join(parts)
    markup = f"<{opened}>{inside}</{name}>" if inside or name not in _EMPTY else f"<{opened}/>"
    return SafeString(markup)


_EMPTY = frozenset({"path", "rect", "circle", "line", "use", "polygon"})
_KEPT = frozenset({"viewBox", "preserveAspectRatio"})


@cache
def _attribute_name(key: str) -> str:
    return key if key in _KEPT else key.rstrip("_").replace("_", "-")


def icon(name: str, sprite: str, x: float, y: float, css: str = "") -> SafeString:
    """A drawing of the icon sprite at a place."""
    classes = f"icon {css}".strip()
    return element("use", href=f"{sprite}#{name}", x=x, y=y, width=16, height=16, class_=classes)
