"""Colours live in tokens.css, and are readable in both themes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STYLES = ROOT / "static" / "css"
NAMED = "white|black|red|green|blue|gray|grey|orange|yellow|purple|pink|brown|navy|teal|silver|gold|crimson|tomato"
LITERAL = re.compile(
    rf"#[0-9a-f]{{3,8}}\b|\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch)\(|:[^;{{}}]*\b(?:{NAMED})\b(?!-)", re.I
)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def literals(css: str) -> list[str]:
    return LITERAL.findall(COMMENT.sub("", css))


@pytest.mark.parametrize("sheet", sorted(p.name for p in STYLES.glob("*.css") if p.name != "tokens.css"))
def test_a_stylesheet_takes_its_colours_from_the_tokens(sheet):
    assert literals((STYLES / sheet).read_text()) == []


@pytest.mark.parametrize("css", ["a { color: #fff; }", "a { color: white }", "a { background: rgb(0 0 0) }"])
def test_the_search_for_literals_finds_them(css):
    assert literals(css)


def test_every_variable_that_is_used_is_defined():
    text = "".join(sheet.read_text() for sheet in STYLES.glob("*.css"))
    defined = set(re.findall(r"(--[\w-]+):", text))
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used - defined == set()


def test_templates_have_no_inline_style_or_script():
    for template in (ROOT / "templates").rglob("*.html"):
        text = template.read_text()
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=\"|<script(?![^>]*\ssrc=)", text), template


def tokens(theme: int) -> dict[str, str]:
    pairs = re.findall(r"(--[\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (STYLES / "tokens.css").read_text())
    return {name: values[theme] for name, *values in pairs}


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


SURFACES = ("paper", "surface", "surface-raised", "surface-sunken", "surface-hover")
READABLE = [
    *((ink, surface) for ink in ("ink", "ink-soft", "ink-faint", "accent") for surface in SURFACES),
    *(
        (ink, "accent-soft")
        for ink in ("ink", "ink-soft", "ink-faint", "accent", "accent-strong", "bad", "good")
    ),
    *((tone, f"{tone}-soft") for tone in ("good", "bad", "warn", "busy", "idle")),
    *((tone, surface) for tone in ("good", "bad", "warn", "busy", "idle") for surface in SURFACES),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("on-bad", "bad"),
    *((ink, "code-surface") for ink in ("code-key", "code-text", "code-number", "code-comment", "ink-faint")),
    *(("ink", marked) for marked in ("mark", "diff-add", "diff-add-strong", "diff-del", "diff-del-strong")),
    *(("ink", f"{tone}-soft") for tone in ("good", "bad", "warn")),
    ("bad", "bad-soft"),
    ("ink-faint", "diff-add"),
    ("ink-faint", "diff-del"),
    ("chart-axis", "surface"),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(theme):
    colours = tokens(theme)
    weak = {
        f"{ink} on {surface}": round(ratio, 2)
        for ink, surface in READABLE
        if (ratio := contrast(colours[f"--{ink}"], colours[f"--{surface}"])) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_controls_and_focus_stand_out(theme):
    colours = tokens(theme)
    for line in ("line-control", "focus"):
        for surface in ("paper", "surface"):
            assert contrast(colours[f"--{line}"], colours[f"--{surface}"]) >= 3
