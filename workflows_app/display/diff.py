"""Two texts side by side: which lines differ, and which words in them. Drawn by templates/site/_diff.html."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, zip_longest

from django.core.paginator import Page, Paginator
from rapidfuzz.distance import Indel

MOST_LINES = 5000  # of each text; what lies beyond is not compared, and the page says so
LONGEST_LINE = 2000  # a longer one is compared in pieces
SHORTEST_PIECE = 40
LETTERS_BY_WORD = 100_000  # of changed lines; after so many, lines are marked as a whole
CLOSE_ENOUGH = 0.4  # lines less alike than this are marked as a whole

Line = tuple[int, str]  # its number and its text
Span = tuple[bool, int, int, int, int]  # whether equal, and from where to where in each sequence

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# A piece of a long line ends where a sentence, a clause or a value does: after a change the pieces soon agree again.
_PIECES = re.compile(
    rf".{{{SHORTEST_PIECE},{LONGEST_LINE}}}?(?:[.,;:!?](?=\s)|[>}})\]](?=\W)|$)|.{{1,{LONGEST_LINE}}}", re.S
)

ROWS_AT_FIRST = 100  # of a difference among others
ROWS_A_PAGE = 500


@dataclass(frozen=True)
class Part:
    """A stretch of a line, and whether the other side lacks it."""

    text: str
    is_changed: bool = False


Parts = tuple[Part, ...]


@dataclass(frozen=True)
class Side:
    """One line of one text, or a piece of one."""

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
    """Rows, and whether the texts are equal or too long to compare in full."""

    rows: tuple[Row, ...]
    is_same: bool
    is_cut: bool = False
    has_more: bool = False  # rows that are left out here
    pages: "Page[Row] | None" = None  # where it is shown page by page

    def beginning(self) -> "Diff":
        """The first rows, and whether there are more."""
        rows = self.rows[:ROWS_AT_FIRST]
        has_more = len(rows) < len(self.rows)
        return replace(self, rows=rows, has_more=has_more, is_cut=self.is_cut and not has_more)

    def page(self, number: int) -> "Diff":
        """One page of all rows."""
        page = Paginator(self.rows, ROWS_A_PAGE).get_page(number or 1)
        rows = tuple(page.object_list)
        return replace(self, rows=rows, is_cut=self.is_cut and not page.has_next(), pages=page)


def side_by_side(old: str, new: str, *, context: int = 3) -> Diff:
    """The differences with some equal lines around them."""
    if old == new:
        return Diff((), is_same=True)
    before, after = list(islice(_lines(old), MOST_LINES + 1)), list(islice(_lines(new), MOST_LINES + 1))
    is_cut = max(len(before), len(after)) > MOST_LINES
    rows = _rows(before[:MOST_LINES], after[:MOST_LINES])
    return Diff(tuple(_folded(list(rows), context)), is_same=False, is_cut=is_cut)


def _lines(text: str) -> Iterator[Line]:
    """The lines with their numbers, long ones in pieces."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= LONGEST_LINE:
            yield number, line
        else:
            yield from ((number, piece[0]) for piece in _PIECES.finditer(line))


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


def _rows(before: list[Line], after: list[Line]) -> Iterator[Row]:
    letters_left = LETTERS_BY_WORD
    for equal, i1, i2, j1, j2 in _spans([text for _, text in before], [text for _, text in after]):
        for old, new in zip_longest(before[i1:i2], after[j1:j2]):
            old_parts: Parts = (Part(old[1]),) if old else ()
            new_parts: Parts = (Part(new[1]),) if new else ()
            if old and new and not equal and letters_left > 0:
                letters_left -= len(old[1]) + len(new[1])
                old_parts, new_parts = _words(old[1], new[1])
            yield Row(
                Side(old[0], old_parts) if old else None,
                Side(new[0], new_parts) if new else None,
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
    near = {
        at
        for index, row in enumerate(rows)
        if not row.is_same
        for at in range(index - context, index + context + 1)
    }
    for is_near, found in groupby(enumerate(rows), key=lambda numbered: numbered[0] in near):
        stretch = [row for _, row in found]
        yield from stretch if is_near else [Row(skipped=len(stretch))]
