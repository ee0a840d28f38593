"""The names a template, an input or a condition may use."""

import pytest

from workflows_app.engine.values.paths import (
    BadPath,
    BadTemplate,
    PathPart,
    canonical,
    parse_path,
    parse_template,
)

BLOCKS = {"analyze", "tidy-up"}

CANONICAL = [
    ("inputs.topic", "inputs.topic"),
    ("inputs", "inputs"),
    ("workflow.topic", "inputs.topic"),
    ("shared_memory.a.b", "inputs.a.b"),
    ("blocks.analyze.output", "blocks.analyze.output"),
    ("blocks.analyze.json.items.0", "blocks.analyze.json.items.0"),
    ("results.analyze", "blocks.analyze.output"),
    ("results.analyze.title", "blocks.analyze.json.title"),
    ("analyze", "blocks.analyze.output"),
    ("analyze.exit", "blocks.analyze.exit"),
    ("analyze.json.title", "blocks.analyze.json.title"),
    ("tidy-up.title.first", "blocks.tidy-up.json.title.first"),
    ("analyze.output.title", "blocks.analyze.json.output.title"),
    ("run.number", "run.number"),
    ("round", "round"),
    ("previous_round.x", "previous_round.x"),
]


@pytest.mark.parametrize(("written", "meant"), CANONICAL)
def test_each_spelling_has_one_meaning(written: str, meant: str) -> None:
    parts = canonical(parse_path(written), BLOCKS, {"previous_round"})
    assert ".".join(parts) == meant
    assert canonical(parts, BLOCKS, {"previous_round"}) == parts


UNKNOWN = [
    ("analyse", "Did you mean 'analyze'?"),
    ("input.topic", "Did you mean 'inputs'?"),
    ("blocks", "name a block"),
    ("blocks.analyze", "output, json, exit and error"),
    ("blocks.analyze.title", "blocks.analyze.json.title"),
    ("blocks.analyze.output.title", "blocks.analyze.json.title"),
    ("blocks.analyse.output", "Did you mean 'analyze'?"),
    ("results.zzz", "unknown block 'zzz'"),
    ("run.secret", "run.id, run.number and run.version"),
    ("round.x", "has no fields"),
]


@pytest.mark.parametrize(("written", "message"), UNKNOWN)
def test_unknown_paths_say_what_would_do(written: str, message: str) -> None:
    with pytest.raises(BadPath, match=message.replace("?", r"\?")):
        canonical(parse_path(written), BLOCKS)


@pytest.mark.parametrize(
    "text", ["", " ", "a.", ".a", "a..b", "a b", "a[0]", "a|upper", "1 + 1", "a()", "a." * 40 + "a"]
)
def test_only_dotted_paths_are_paths(text: str) -> None:
    with pytest.raises(BadPath):
        parse_path(text)


def test_a_template_is_literals_and_paths() -> None:
    parts = parse_template(r"Dear {{ inputs.name }}, \{{ {{run.id}}{} }}")
    assert parts == (
        "Dear ",
        PathPart("inputs.name", ("inputs", "name"), 5),
        ", {{ ",
        PathPart("run.id", ("run", "id"), 28),
        "{} }}",
    )


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("ab {{ inputs.x", 3, "never closed"),
        ("{{ a {{ b }}", 0, "never closed"),
        ("ok {{ inputs.x | upper }}", 3, "expressions are not supported"),
        ("{{ }}", 0, "is empty"),
    ],
)
def test_bad_templates_say_where(text: str, offset: int, message: str) -> None:
    with pytest.raises(BadTemplate, match=message) as caught:
        parse_template(text)
    assert caught.value.offset == offset
