"""Two texts side by side: which lines differ, and which words in them. Drawn by templates/site/_diff.html."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rapidfuzz.distance import Indel

MOST_LINES = 5000  # of each text; what lies beyond is not compared, and the page says so
LONGEST_LINE = 4000
LETTERS_BY_WORD = 100_000  # of changed lines; after so many, lines are marked as a whole
CLOSE_ENOUGH = 0.4  # lines less alike than this are marked as a whole

Span = tuple[bool, int, int, int, int]  # whether equal, and from where to where in each sequence

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class Part:
    """A stretch of a line, and whether the other side lacks it."""

    text: str
    is_changed: bool = False


Parts = tuple[Part, ...]


@dataclass(frozen=True)
class Side:
    """One line of one text."""

    number: int
    parts: Parts


@dataclass(frozen=True)
class Row:
    """Two lines that stand beside each other; a side is None where its text has no such line."""

    old: Side | None = None
    new: Side | None = None
    is_same: bool = False
    skipped: int = 0  # so many equal lines left out here


@dataclass(frozen=True)
class Diff:
    """All rows, and whether the texts are equal or too long to compare in full."""

    rows: tuple[Row, ...]
    is_same: bool
    is_cut: bool = False


def side_by_side(old: str, new: str, *, context: int = 3) -> Diff:
    """The differences with some equal lines around them."""
    if old == new:
        return Diff((), is_same=True)
    before, after = old.splitlines(), new.splitlines()
    is_cut = max(len(before), len(after)) > MOST_LINES
    before, after = _bounded(before), _bounded(after)
    return Diff(tuple(_folded(list(_rows(before, after)), context)), is_same=False, is_cut=is_cut)


def _bounded(lines: list[str]) -> list[str]:
    return [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…" for line in lines[:MOST_LINES]]


def _spans(one: Sequence[str], other: Sequence[str]) -> list[Span]:
    """Equal and differing stretches in turn; bit-parallel, so no text makes it slow as difflib would be."""
    spans: list[Span] = []
    for code in Indel.opcodes(one, other):
        equal = code.tag == "equal"
        if spans and not equal and not spans[-1][0]:
            _, i1, _, j1, _ = spans.pop()
            spans.append((False, i1, code.src_end, j1, code.dest_end))
        else:
            spans.append((equal, code.src_start, code.src_end, code.dest_start, code.dest_end))
    return spans


def _rows(before: list[str], after: list[str]) -> Iterator[Row]:
    letters_left = LETTERS_BY_WORD
    for equal, i1, i2, j1, j2 in _spans(before, after):
        for i, j in zip_longest(range(i1, i2), range(j1, j2)):
            old, new = None if i is None else before[i], None if j is None else after[j]
            old_parts: Parts = (Part(old or ""),)
            new_parts: Parts = (Part(new or ""),)
            if not equal and old is not None and new is not None and letters_left > 0:
                letters_left -= len(old) + len(new)
                old_parts, new_parts = _words(old, new)
            yield Row(
                None if i is None else Side(i + 1, old_parts),
                None if j is None else Side(j + 1, new_parts),
                is_same=equal,
            )


def _words(old: str, new: str) -> tuple[Parts, Parts]:
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if Indel.normalized_similarity(one, other) < CLOSE_ENOUGH:
        return (Part(old),), (Part(new),)
    spans = _spans(one, other)
    return (
        tuple(Part("".join(one[a:b]), not equal) for equal, a, b, _, _ in spans if a < b),
        tuple(Part("".join(other[a:b]), not equal) for equal, _, _, a, b in spans if a < b),
    )


def _folded(rows: list[Row], context: int) -> Iterator[Row]:
    """The rows, with long stretches of equal lines put into one row that counts them."""
    near: set[int] = set()
    for index, row in enumerate(rows):
        if not row.is_same:
            near.update(range(index - context, index + context + 1))
    skipped = 0
    for index, row in enumerate(rows):
        if index not in near:
            skipped += 1
            continue
        if skipped:
            yield Row(skipped=skipped)
            skipped = 0
        yield row
    if skipped:
        yield Row(skipped=skipped)
