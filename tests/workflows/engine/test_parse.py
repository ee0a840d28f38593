"""What YAML is refused before it is understood, and how plain values are read."""

import json
import time
import tracemalloc

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timing import PROMPTLY
from tests.workflows.engine.validate.document_errors import one_fault
from workflows_app.engine.parse import MAX_BYTES, MAX_DEPTH, parse

BLOCK = "blocks:\n  a: {type: llm, soul_ref: s}\n"

REFUSED = [
    # text                                          path            line  message
    ("", "", 1, "is empty"),
    ("# only a comment\n", "", 1, "is empty"),
    ("- a\n- b\n", "", 1, "must be a mapping with `blocks:`, not a list"),
    ("just text", "", 1, "not the text 'just text'"),
    (BLOCK + "config: {a: 1, b: 2, a: 3}\n", "config.a", 3, "written twice, on lines 3 and 3"),
    (BLOCK + "id: x\n\nid: y\n", "id", 5, "written twice, on lines 3 and 5"),
    (BLOCK + "config:\n\tkey: 1\n", "", 4, "a tab cannot indent YAML"),
    (BLOCK + "config: {on: 1}\n", "config.on", 3, "the key 'on' means true in YAML; keys must be text"),
    (BLOCK + "config: {1: x}\n", "config.1", 3, "means the number 1"),
    (BLOCK + "config: {~: x}\n", 'config["~"]', 3, "means nothing (null)"),
    (BLOCK + "config: {010: x}\n", "config.010", 3, "is octal"),
    (BLOCK + "config:\n  ? [a, b]\n  : x\n", "config", 4, "a list cannot be a key"),
    (BLOCK + "config: {code: 012}\n", "config.code", 3, "'012' is octal in YAML and means 10; write 12"),
    (BLOCK + "config: {at: 12:30}\n", "config.at", 3, "base-60"),
    (BLOCK + "config: {x: .nan}\n", "config.x", 3, "not a finite number"),
    (BLOCK + "config: {x: -.INF}\n", "config.x", 3, "not a finite number"),
    (BLOCK + "config: {x: 1.0e+999}\n", "config.x", 3, "not a finite number"),
    (BLOCK + "config: {x: " + "9" * 5000 + "}\n", "config.x", 3, "too long for a number"),
    (BLOCK + "config: &base {x: 1}\n", "config", 3, "the anchor &base is not supported"),
    (BLOCK + "config: {<<: {x: 1}}\n", 'config["<<"]', 3, "merge keys"),
    (BLOCK + "config: !!python/object:os.system {}\n", "config", 3, "the tag"),
    (BLOCK + "config: {x: !secret y}\n", "config.x", 3, "the tag '!secret' is not supported"),
    (BLOCK + "---\n" + BLOCK, "", 3, "a second document"),
    (BLOCK + "config: {x: a: b}\n", "", 3, "not valid YAML"),
    (BLOCK + "config: a: b\n", "", 3, "put texts that contain ': ' in quotes"),
    (BLOCK + "config: 'open\n", "", 3, "never closed"),
    (BLOCK + "# \x07\n", "", 3, "control character U+0007"),
    (BLOCK + 'config: {x: "a\\0b"}\n', "config.x", 3, "U+0000, which cannot be stored"),
    (BLOCK + 'config: {x: "\\ud800"}\n', "", 3, "not valid YAML"),
    ("a: \x00", "", 1, "control character U+0000"),
    (BLOCK + "# \ud800\n", "", 3, "control character U+D800"),
    (BLOCK.encode() + b"# caf\xe9\n", "", 3, "not valid UTF-8"),
    ("x" * (MAX_BYTES + 1), "", None, "too large"),
    ("é" * (MAX_BYTES // 2 + 1), "", None, "too large"),
    (BLOCK + "config: {x: " + "[" * 100_000, None, 3, f"nested deeper than {MAX_DEPTH} levels"),
    (BLOCK + "config: {x: [" + "[]," * 300_000 + "]}\n", None, 3, "more than 100,000 lists and mappings"),
    (BLOCK + "config:\n" + "".join("  " * n + "- \n" for n in range(1, 90)), None, None, "nested deeper"),
]


@pytest.mark.parametrize(("text", "path", "line", "message"), REFUSED)
def test_yaml_that_is_refused(text: str | bytes, path: str | None, line: int | None, message: str) -> None:
    fault = one_fault(text)
    assert message in fault.message
    assert path is None or fault.path == path
    assert line is None or fault.line == line


def test_every_alias_of_a_bomb_is_refused_at_once() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 60)]
    tracemalloc.start()
    started = time.perf_counter()
    document = parse("\n".join(rows))
    elapsed = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not document.is_whole
    assert [fault.line for fault in document.faults] == [1, 2, 2]
    assert "the alias *a0 is not supported" in document.faults[-1].message
    assert elapsed < PROMPTLY
    assert peak < 5_000_000


def test_five_megabytes_are_refused_before_parsing() -> None:
    text = "blocks:\n" + "  a: {type: llm}\n" * 320_000
    started = time.perf_counter()
    assert "too large" in one_fault(text).message
    assert time.perf_counter() - started < PROMPTLY


def test_a_full_size_document_of_nothing_but_faults_is_bounded() -> None:
    text = ("blocks:\n" + "".join(f" b{n}: {{typ: x}}\n" for n in range(60_000)))[: MAX_BYTES - 1]
    started = time.perf_counter()
    assert "at most 2000" in one_fault(text[: text.rindex("\n")]).message
    assert time.perf_counter() - started < 10


def test_dates_stay_text_and_plain_words_keep_their_yaml_meaning() -> None:
    document = parse(
        "a: 2024-01-31\nb: 2001-12-14t21:59:43.10-05:00\nc: yes\nd: 0x1F\ne: 1_000\nf: ~\ng: !!str 12\n"
    )
    assert document.faults == []
    assert document.value == {
        "a": "2024-01-31",
        "b": "2001-12-14t21:59:43.10-05:00",
        "c": True,
        "d": 31,
        "e": 1000,
        "f": None,
        "g": "12",
    }
    assert document.spelling(("c",)) == "yes"


def test_lines_are_known_for_every_key_item_and_line_of_text() -> None:
    document = parse("a:\n  b:\n    - x\n    -\n      c: 1\n  d: |\n    one\n    two\n  e: [1,\n    2]\n")
    assert document.line(("a", "b", 0)) == 3
    assert document.line(("a", "b", 1, "c")) == 5
    assert document.line(("a", "b", 1, "missing")) == 5
    assert document.line(("a", "e", 1)) == 10
    assert document.text_line(("a", "d"), 2) == 8
    assert document.line(()) == 1


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(words, values, min_size=1, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_json_like_values_are_read_as_the_c_loader_reads_them(
    value: dict[str, object], is_flow: bool
) -> None:
    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump(value, Dumper=Plain, default_flow_style=is_flow, allow_unicode=False)
    document = parse(text)
    assert document.faults == []
    assert json.dumps(document.value) == json.dumps(yaml.load(text, yaml.CSafeLoader))
