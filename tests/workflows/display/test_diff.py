"""Two texts side by side."""

import re

import pytest
from django.template.loader import render_to_string

from workflows_app.display.diff import (
    LONGEST_LINE,
    MOST_LINES,
    ROWS_A_PAGE,
    ROWS_AT_FIRST,
    Diff,
    Row,
    side_by_side,
)


def shown(row: Row) -> tuple[str | None, str | None]:
    """Both sides as text, with what changed in brackets."""
    sides = []
    for side in (row.old, row.new):
        parts = side.parts if side else ()
        text = "".join(f"[{p.text}]" if p.is_changed else p.text for p in parts)
        sides.append(text if side else None)
    return sides[0], sides[1]


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("a\nb", "a\nb\nc", [("a", "a"), ("b", "b"), (None, "c")]),
        ("a\nb", "b", [("a", None), ("b", "b")]),
        ("", "a", [(None, "a")]),
        ("say hello now", "say goodbye now", [("say [hello] now", "say [goodbye] now")]),
        ("completely different", "1234567890 !!", [("completely different", "1234567890 !!")]),
        ("one\ntwo", "ONE", [("one", "ONE"), ("two", None)]),
    ],
)
def test_lines_stand_beside_each_other_and_words_are_marked(old, new, rows):
    assert [shown(row) for row in side_by_side(old, new).rows] == rows


def test_equal_texts_have_no_rows():
    assert side_by_side("same\n", "same\n").is_same


def test_equal_lines_far_from_a_change_are_counted_and_left_out():
    lines = [str(i) for i in range(100)]
    changed = [*lines[:50], "new", *lines[51:]]
    rows = side_by_side("\n".join(lines), "\n".join(changed), context=2).rows
    assert [row.skipped for row in rows] == [48, 0, 0, 0, 0, 0, 47]
    assert (rows[3].old.number, rows[3].new.number) == (51, 51)


def test_texts_too_long_are_compared_in_part_and_say_so():
    long = "\n".join(str(i) for i in range(MOST_LINES + 50))
    diff = side_by_side("first\n" + long, long)
    assert diff.is_cut


def test_a_long_line_is_compared_in_pieces_that_agree_again_after_a_change():
    sentences = [f"Sentence number {n} says something about the thing it is about." for n in range(500)]
    changed = [*sentences[:300], "And here is one more that nobody had expected at all.", *sentences[300:]]
    diff = side_by_side(" ".join(sentences), " ".join(changed))
    differing = [row for row in diff.rows if not row.is_same and not row.skipped]
    assert len(differing) <= 2 and not diff.is_cut
    assert {row.new.number for row in differing if row.new} == {1}  # it is one line all the same
    assert max(len(row.old.parts[0].text) for row in side_by_side("x" * 100_000, "y").rows) <= LONGEST_LINE


def different(lines: int) -> Diff:
    return side_by_side(
        "\n".join(f"old {n}" for n in range(lines)), "\n".join(f"new {n}" for n in range(lines))
    )


def test_its_beginning_says_that_there_is_more():
    begun = different(ROWS_AT_FIRST + 1).beginning()
    assert len(begun.rows) == ROWS_AT_FIRST and begun.has_more
    assert not different(ROWS_AT_FIRST).beginning().has_more


def test_its_pages_leave_nothing_out():
    diff = different(2 * ROWS_A_PAGE + 1)
    pages = [diff.page(n) for n in (0, 2, 3)]
    assert sum((page.rows for page in pages), ()) == diff.rows
    assert diff.page(99).rows == pages[-1].rows
    assert side_by_side("", "").page(1).rows == ()


def test_the_page_escapes_what_it_compares():
    diff = side_by_side("<b>one</b> two", "<b>one</b> three")
    html = render_to_string("site/_diff.html", {"diff": diff, "old_title": "<i>", "new_title": "v7"})
    html = re.sub(r"\s+>", ">", html)
    assert "<b>" not in html and "<i>" not in html
    assert "<del>two</del>" in html and "<ins>three</ins>" in html


def test_repetitive_lines_are_compared_word_by_word():
    (row,) = side_by_side(" a" * 900, " a" * 450 + " b" + " a" * 449).rows
    assert [p.text.strip() for p in row.new.parts if p.is_changed] == ["b"]
