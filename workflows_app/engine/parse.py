"""YAML text to plain values, with the line of every key, in one pass over the C parser's events.

Reading events instead of loading keeps the pass flat (no recursion to crash), sees anchors, tags and
duplicate keys, and knows lines for free; it is also quicker than the C loader, whose second half is Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import yaml

from workflows_app.engine.definition import Fault

SUFFIXES: Final = (".yaml", ".yml")
MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 64
MAX_CONTAINERS: Final = 100_000
MAX_FAULTS: Final = 500

KeyPath = tuple[str | int, ...]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
_PLAIN_KEY: Final = re.compile(r"[\w-]+")
_STR_TAG: Final = "tag:yaml.org,2002:str"
_BOOLEANS: Final = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


def format_path(path: KeyPath) -> str:
    """`blocks.analyze.assertions[1].type`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part if len(part) <= 60 else part[:57] + "…"}"]'
    return text


class ParsedDocument:
    """A document as plain values, what was wrong with its YAML, and where each key stood."""

    def __init__(self) -> None:
        self.value: Any = None
        self.faults: list[Fault] = []
        self.is_whole = True
        # By identity of the container: the line of each key or item.
        self.lines: dict[int, dict[Any, int]] = {}
        # Literal texts (`|`) start on the line after their key; words such as `on` became something else.
        self.text_starts: dict[tuple[int, Any], int] = {}
        self.spellings: dict[tuple[int, Any], str] = {}

    def add(self, path: KeyPath, line: int | None, message: str) -> None:
        """Record an error."""
        self.faults.append(Fault(format_path(path), line, message))

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest one above it that is there."""
        box, line = self.value, None
        for part in path:
            lines = self.lines.get(id(box))
            if lines is None or part not in lines:
                break
            line = lines[part]
            box = box[part]
        return line if line is not None or not self.lines else 1

    def text_line(self, path: KeyPath, line_in_text: int) -> int | None:
        """The line in the document of a line (from 1) of a text value."""
        box = self._box(path)
        start = self.text_starts.get((id(box), path[-1])) if box is not None else None
        return self.line(path) if start is None else start + line_in_text - 1

    def spelling(self, path: KeyPath) -> str | None:
        """How a value was written, if YAML turned a word such as `on` into something else."""
        box = self._box(path)
        return None if box is None else self.spellings.get((id(box), path[-1]))

    def get(self, path: KeyPath) -> Any:
        """The value at a path that is there."""
        return self._box(path)[path[-1]]

    def _box(self, path: KeyPath) -> Any:
        box = self.value
        for part in path[:-1]:
            if part not in self.lines.get(id(box), ()):
                return None
            box = box[part]
        return box if path else None


class _Stop(Exception):
    """Reading further makes no sense; the reason has been noted."""


def parse(source: str | bytes) -> ParsedDocument:
    """Read a workflow document; never raises, whatever the text."""
    document = parse_value(source)
    if document.is_whole and not isinstance(document.value, dict):
        document.is_whole = False
        if document.value is None:
            document.add((), 1, "the document is empty; it needs at least `blocks:`")
        else:
            document.add(
                (), 1, f"the document must be a mapping with `blocks:`, not {describe(document.value)}"
            )
    return document


def parse_value(source: str | bytes) -> ParsedDocument:
    """Read YAML that may hold any value, by the same rules; never raises, whatever the text."""
    document = ParsedDocument()
    document.is_whole = False
    text = _text_of(source, document)
    if text is None:
        return document
    loader = _Loader(text)
    try:
        _Reader(document, loader.get_event).read()
        document.is_whole = True
    except _Stop:
        pass
    except yaml.YAMLError as error:
        document.add((), *_explain(error, text))
    finally:
        loader.dispose()
    return document


def _text_of(source: str | bytes, document: ParsedDocument) -> str | None:
    """The text, if it is short enough and made of characters YAML allows."""
    # A character is at least a byte, so a text that is far too long is not even encoded.
    if len(source) > MAX_BYTES or (
        isinstance(source, str) and len(source.encode("utf-8", "surrogatepass")) > MAX_BYTES
    ):
        document.add((), None, f"the document is too large; at most {MAX_BYTES // 1024} KB are allowed")
        return None
    if isinstance(source, bytes):
        try:
            source = source.decode("utf-8")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            document.add((), line, f"byte {error.start} is not valid UTF-8; save the file as UTF-8")
            return None
    source = source.removeprefix("\ufeff")
    if found := _FORBIDDEN.search(source):
        line = source.count("\n", 0, found.start()) + 1
        document.add((), line, f"the control character U+{ord(found.group()):04X} is not allowed")
        return None
    return source


class _Reader:
    """Turns events into values; `_stack` holds what is open around the current container."""

    def __init__(self, document: ParsedDocument, next_event: Callable[[], Any]) -> None:
        self._document = document
        self._next = next_event
        self._stack: list[tuple[Any, dict[Any, int], Any]] = []
        self._box: Any = None
        self._lines: dict[Any, int] = {}
        self._key: Any = None  # the key waiting for its value; None in a list or before a key

    def read(self) -> None:
        """Read the one document of the stream."""
        documents = 0
        while (event := self._next()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._open(event, {} if kind is yaml.MappingStartEvent else [])
                if len(self._document.lines) > MAX_CONTAINERS:
                    self._stop(event, f"more than {MAX_CONTAINERS:,} lists and mappings")
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._box, self._lines, _ = self._stack.pop()
            elif kind is yaml.AliasEvent:
                self._stop(event, f"the alias *{event.anchor} is not supported; write the value out")
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._stop(event, "a second document begins here; one file holds one workflow")

    def _scalar(self, event: Any) -> None:
        """A key, a value of a mapping, or an item."""
        value: Any = event.value
        box = self._box
        problem = None
        if event.implicit[0] and value[:1] in _RESOLVERS:
            value, problem = _resolve(value)
        if event.anchor is not None or (event.tag is not None and not event.implicit[0]):
            value = self._refuse_marks(event, value)
        line = event.start_mark.line + 1
        if type(box) is dict and self._key is None:
            self._key = self._checked_key(event, value, line, problem)
            self._lines[self._key] = line
            return
        key = self._key
        if type(box) is list:
            key = len(box)
            self._lines[key] = line
        if event.style == '"' and "\x00" in event.value:
            self._add(key, line, "contains the character U+0000, which cannot be stored")
        elif event.style == "|":
            self._document.text_starts[(id(box), key)] = line + 1
        elif problem is not None:
            self._add(key, line, f"{describe(event.value).removeprefix('the text ')} {problem}")
        elif type(value) is bool and event.value.lower() not in ("true", "false"):
            self._document.spellings[(id(box), key)] = event.value
        self._put(value)

    def _checked_key(self, event: Any, value: Any, line: int, problem: str | None) -> str:
        text: str = event.value
        if problem is not None:
            self._add(text, line, f"the key {text[:60]!r} {problem}")
        elif not isinstance(value, str):
            meaning = f"means {describe(value)} in YAML" if text else "is empty"
            self._add(text, line, f"the key {text!r} {meaning}; keys must be text, so put it in quotes")
        elif text == "<<" and event.implicit[0]:
            self._add(text, line, "merge keys (<<) are not supported; write the keys out")
        if text in self._lines:
            self._add(
                text, line, f"the key {text!r} is written twice, on lines {self._lines[text]} and {line}"
            )
        return text

    def _put(self, value: Any) -> None:
        box = self._box
        if type(box) is dict:
            box[self._key] = value
            self._key = None
        elif type(box) is list:
            box.append(value)
        else:
            self._document.value = value

    def _open(self, event: Any, box: Any) -> None:
        if event.anchor is not None or event.tag is not None:
            self._refuse_marks(event, None)
        if type(self._box) is dict and self._key is None:
            self._stop(event, f"a {'list' if box == [] else 'mapping'} cannot be a key; keys must be text")
        if type(self._box) is list:
            self._lines[len(self._box)] = event.start_mark.line + 1
        if len(self._stack) >= MAX_DEPTH:
            self._stack = self._stack[:6]  # the whole path would help nobody
            self._stop(event, f"nested deeper than {MAX_DEPTH} levels")
        key = self._key
        self._put(box)
        self._stack.append((self._box, self._lines, key))
        self._box, self._key = box, None
        self._lines = self._document.lines[id(box)] = {}

    def _refuse_marks(self, event: Any, value: Any) -> Any:
        """Anchors and tags are errors; `!!str` is honoured."""
        line = event.start_mark.line + 1
        if event.anchor is not None:
            self._add(
                self._here(),
                line,
                f"the anchor &{event.anchor} is not supported; write the value out where it is used",
            )
        if event.tag == _STR_TAG:
            return getattr(event, "value", value)
        if event.tag is not None and event.tag != "!":
            self._add(self._here(), line, f"the tag {event.tag!r} is not supported; write plain values")
        return value

    def _here(self) -> Any:
        """The key or index of the value being read."""
        return len(self._box) if type(self._box) is list else self._key

    def _path(self, key: Any) -> KeyPath:
        path = [entry[2] if entry[2] is not None else len(entry[0]) - 1 for entry in self._stack[1:]]
        return (*path, key) if key is not None else tuple(path)

    def _add(self, key: Any, line: int, message: str) -> None:
        self._document.add(self._path(key), line, message)
        if len(self._document.faults) >= MAX_FAULTS:
            raise _Stop

    def _stop(self, event: Any, message: str) -> None:
        self._document.add(self._path(self._key), event.start_mark.line + 1, message)
        raise _Stop


_RESOLVERS: Final = {
    first: [
        (tag.rpartition(":")[2], pattern.match)
        for tag, pattern in resolvers
        if not tag.endswith(":timestamp")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@lru_cache(maxsize=4096)
def _resolve(text: str) -> tuple[Any, str | None]:
    """A plain scalar's value, and what is wrong with writing it so.

    YAML 1.1 as PyYAML reads it, but dates stay text (JSON has none) and traps are refused.
    """
    for tag, matches in _RESOLVERS[text[:1]]:
        if not matches(text):
            continue
        if tag == "null":
            return None, None
        if tag == "bool":
            return _BOOLEANS[text.lower()], None
        if tag in ("int", "float"):
            return _number(text, tag)
    return text, None


def _number(text: str, tag: str) -> tuple[Any, str | None]:
    digits = text.replace("_", "")
    if ":" in digits:
        return None, "is a base-60 number in YAML; put it in quotes"
    unsigned = digits.lstrip("+-")
    if tag == "float":
        is_finite = unsigned.lower() not in (".inf", ".nan") and math.isfinite(float(digits))
        return (float(digits), None) if is_finite else (None, "is not a finite number")
    if len(unsigned) > 1000:
        return None, "is too long for a number; put it in quotes"
    if len(unsigned) > 1 and unsigned[0] == "0" and unsigned.isdigit():
        return None, (
            f"is octal in YAML and means {int(digits, 8)}; write {int(digits)}, or put it in quotes if it is text"
        )
    return int(digits, 0), None  # 12, 0x1F and 0b101; octals were refused above


def _explain(error: yaml.YAMLError, text: str) -> tuple[int | None, str]:
    """A parser's complaint as a line and a sentence."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if mark is None:
        return None, f"not valid YAML: {problem}"
    line = mark.line + 1
    opened = getattr(error, "context_mark", None)
    if "end of stream" in problem and opened is not None:
        return opened.line + 1, "what is opened here, a quote or a bracket, is never closed"
    written = text.split("\n", line)[line - 1] if text.count("\n") >= line - 1 else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or "'\\t'" in problem:
        return line, "a tab cannot indent YAML; use spaces"
    if "mapping values are not allowed" in problem:
        return (
            line,
            "a ':' is not allowed here; put texts that contain ': ' in quotes, and check the indentation",
        )
    return line, f"not valid YAML: {problem}"


def describe(value: Any) -> str:
    """A value in words, for a message."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        shown = repr(value)
        return f"the number {shown if len(shown) <= 40 else shown[:37] + '…'}"
    if isinstance(value, str):
        return f"the text {(value if len(value) <= 40 else value[:37] + '…')!r}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"
