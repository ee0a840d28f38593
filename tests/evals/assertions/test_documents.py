"""JSON is found in prose exactly where it is, in linear time."""

from __future__ import annotations

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from evals_app.assertions.limits import Deadline
from evals_app.assertions.matching.json_documents import DocumentFinder, NotJson, refuse_constant

DECODER = json.JSONDecoder(parse_constant=refuse_constant)
PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        '"',
        '"a"',
        ":",
        ",",
        "1",
        "01",
        "-",
        "1.5e3",
        "true",
        "nul",
        "null",
        "NaN",
        "\\",
        '\\"',
        " ",
        "\n",
        "\x01",
        '{"a": 1}',
        "[]",
        "{}",
        '["x{"]',
        '"a":',
        "word",
    ]
)


def naive(text):
    """Try every bracket in turn; quadratic, and obviously right."""
    found, at = [], 0
    while at < len(text):
        if text[at] in "{[":
            try:
                document, end = DECODER.raw_decode(text, at)
            except (json.JSONDecodeError, NotJson):
                pass
            else:
                found.append(document)
                at = end
                continue
        at += 1
    return found


def find(text, patience=None):
    finder = DocumentFinder(text, Deadline("The search", 60))
    if patience is not None:
        finder.patience = patience
    return list(finder)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_both_ways_of_searching_find_what_trying_every_bracket_finds(text):
    expected = json.dumps(naive(text))
    assert json.dumps(find(text)) == expected
    assert json.dumps(find(text, patience=-1)) == expected  # the sure way alone
    assert json.dumps(find(text, patience=5)) == expected  # changing over half-way


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.integers(2, 40))
def test_repetition_is_found_too(piece, times):
    text = piece * times
    assert json.dumps(find(text, patience=-1)) == json.dumps(naive(text))


def test_cost_grows_with_the_length_only():
    for piece in ("[", "{", '{"', '{"a":', '["{', "[1,", '{"a":[', '"\\"{'):
        taken = []
        for size in (20_000, 80_000):
            text = piece * (size // len(piece))
            started = time.thread_time()  # others on this machine do not count
            find(text)
            taken.append(time.thread_time() - started)
        assert taken[1] < 12 * taken[0] + 0.2, piece
