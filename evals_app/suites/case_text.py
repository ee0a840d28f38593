"""Adds an eval case to a workflow's text and leaves every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from itertools import product
from typing import Any

import yaml

from workflows_app.engine.parse import parse

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_COMMENT = re.compile(r"#[^\n]*")
_LONGEST_FLOW = 100
# JSON leaves these as they are, but YAML refuses them or takes them for line breaks.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class CannotInsert(ValueError):
    """The text is written in a way that cannot be added to; the sentence says what to do instead."""


def insert_case(text: str, case: Mapping[str, Any]) -> str:
    """The text with one more case at the end of `eval.cases`; the section is made if it is missing."""
    document = parse(text)
    wanted = deepcopy(document.value)
    if document.faults or not isinstance(wanted, dict):
        raise CannotInsert("the document is not valid, so nothing can be added to it.")
    suite = wanted["eval"] = wanted.get("eval") or {}
    cases = (suite.get("cases") or []) if isinstance(suite, dict) else None
    if not isinstance(cases, list):
        raise CannotInsert("`eval` must be a mapping and `eval.cases` a list; correct that first.")
    suite["cases"] = [*cases, dict(case)]
    written = _Text(text)
    for is_flow, keeps_blank_lines in product((False, True), repeat=2):
        changed = written.with_case(dict(case), is_flow, keeps_blank_lines)
        found = parse(changed)
        # Whatever the text looked like: it must now mean the same as before, plus the case.
        if not found.faults and found.value == wanted:
            return changed
    raise CannotInsert(
        "the `eval` section is written in a way that cannot be added to; add the case by hand."
    )


class _Text:
    """A document's lines, and its nodes with their positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        self.newline = "\r\n" if "\r\n" in text else "\n"
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if not isinstance(root, yaml.MappingNode) or root.flow_style:
            raise CannotInsert("the document is not written in lines of `key: value`; add the case by hand.")
        self.root = root
        self.keeps_blank_lines = False

    def with_case(self, case: dict[str, Any], is_flow: bool, keeps_blank_lines: bool) -> str:
        """The text with the case in one line or several, before or after the blank lines that end its section."""
        item = [f"- {_json(case)}"] if is_flow else case_lines(case)
        self.keeps_blank_lines = keeps_blank_lines
        suite_key, suite = _entry(self.root, "eval")
        if suite_key is None or suite is None:
            return self._add_lines(self.root, ["eval:", "  cases:", *_indented(item, 4)])
        if _is_empty(suite):
            lines = ["cases:", *_indented(item, 2)]
            return self._replace(suite_key, suite, _indented(lines, suite_key.start_mark.column + 2))
        cases_key, cases = _entry(suite, "cases")
        if cases_key is None or cases is None:
            if suite.flow_style:
                return self._add_in_flow(suite, f"cases: [{_json(case)}]")
            return self._add_lines(suite, ["cases:", *_indented(item, 2)])
        if _is_empty(cases) and not suite.flow_style:
            lines = _indented(item, cases_key.start_mark.column + 2)
            return self._replace(cases_key, cases, lines)
        if cases.flow_style:
            return self._add_in_flow(cases, _json(case))
        return self._add_lines(cases, item)

    def _start_of(self, line: int) -> int:
        # The parser counts a line after the last, also where the text does not end in a line break.
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def _offset(self, mark: Any) -> int:
        return min(self._start_of(mark.line) + int(mark.column), len(self.text))

    def _add_lines(self, node: Any, lines: list[str]) -> str:
        """Add lines after the last one of a block collection, as far in as its own begin."""
        column = int(node.start_mark.column)
        at = self._end_of(node, column)
        before = self.text[:at]
        if before and not _BREAK.search(before[-1]):
            before += self.newline
        return before + self._joined(_indented(lines, column)) + self.text[at:]

    def _end_of(self, node: Any, column: int) -> int:
        """The offset after a node's last line, before blank lines and comments that belong to what follows."""
        end = self._offset(node.end_mark)
        line = min(node.end_mark.line, len(self.starts) - 1)
        if not self.text[self.starts[line] : end].strip():
            line -= 1  # the node ended before this line
        while line > node.start_mark.line and not self.keeps_blank_lines:
            written = self.text[self.starts[line] : self._start_of(line + 1)]
            is_outside = written.lstrip().startswith("#") and len(written) - len(written.lstrip()) < column
            if written.strip() and not is_outside:
                break
            line -= 1
        return self._start_of(line + 1)

    def _joined(self, lines: list[str]) -> str:
        return "".join(line + self.newline for line in lines)

    def _replace(self, key: Any, value: Any, lines: list[str]) -> str:
        """Put lines under a key in place of its empty value; a comment behind it stays."""
        start = self.text.index(":", self._offset(key.end_mark)) + 1
        end = max(self._offset(value.end_mark), start)
        rest_end = next((found.start() for found in _BREAK.finditer(self.text, end)), len(self.text))
        rest = self.text[end:rest_end].rstrip()
        head = self.text[:start] + (f" {rest.lstrip()}" if rest.strip() else "")
        return head + self.newline + self._joined(lines) + _BREAK.sub("", self.text[rest_end:], count=1)

    def _add_in_flow(self, node: Any, item: str) -> str:
        """Add an entry before the closing bracket."""
        at = self._offset(node.end_mark) - 1
        comma = ""
        if node.value:
            last = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
            between = _COMMENT.sub("", self.text[self._offset(last.end_mark) : at])
            comma = " " if "," in between else ", "
        return self.text[:at] + comma + item + self.text[at:]


def _entry(node: yaml.MappingNode, name: str) -> tuple[Any, Any]:
    return next(((key, value) for key, value in node.value if key.value == name), (None, None))


def _is_empty(node: Any) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return node.tag == "tag:yaml.org,2002:null"
    return not node.value


def _indented(lines: list[str], by: int) -> list[str]:
    return [" " * by + line if line else line for line in lines]


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def case_lines(case: dict[str, Any]) -> list[str]:
    """A case as the lines of one list entry."""
    text = yaml.dump(
        [_short(case)],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_LONGEST_FLOW,
        line_break="\n",
    )
    return str(text).rstrip("\n").split("\n")


class _Flow(dict[str, Any]):
    """A small mapping that is written on one line."""


def _short(value: Any) -> Any:
    """The value with each assertion on one line where it fits."""
    if isinstance(value, dict):
        inner = {key: _short(item) for key, item in value.items()}
        is_small = "type" in inner and len(_json(value)) <= _LONGEST_FLOW and "\n" not in str(value)
        return _Flow(inner) if is_small else inner
    return [_short(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Writes as people do: lists set in, texts of several lines as they are, nothing twice."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)
_Dumper.add_representer(
    _Flow,
    lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=True),
)
