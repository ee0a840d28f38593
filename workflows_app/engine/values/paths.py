"""The one set of names for `{{ path }}`, `inputs`, `eval_key` and a code block's data.

A path is written in one of several ways and means one thing, its *canonical* form:

    inputs.x     workflow.x     shared_memory.x           -> inputs.x
    blocks.a.output|json|exit|error                       -> as written
    a            results.a                                -> blocks.a.output
    a.exit       results.a.exit                           -> blocks.a.exit
    a.title      results.a.title                          -> blocks.a.json.title
    run.id|number|version, round, the carried context     -> as written
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

INPUT_ROOTS: Final = ("inputs", "workflow", "shared_memory")
BLOCK_ROOTS: Final = ("blocks", "results")
ROOTS: Final = frozenset({*INPUT_ROOTS, *BLOCK_ROOTS, "run", "round"})
BLOCK_FIELDS: Final = ("output", "json", "exit", "error")
RUN_FIELDS: Final = ("id", "number", "version")
MAX_PATH_PARTS: Final = 32

PATH_PATTERN: Final = r"[\w-]+(?:\.[\w-]+)*"
_PATH = re.compile(PATH_PATTERN)
_OPEN = re.compile(r"\\?\{\{")

_UNCLOSED: Final = r"'{{' is never closed with '}}'; write \{{ for a literal '{{'"

Parts = tuple[str, ...]


class BadPath(ValueError):
    """A text that is not a path, or a path that names nothing."""


class BadTemplate(ValueError):
    """A template that cannot be read; `offset` says where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class PathPart:
    """A `{{ path }}` in a template."""

    text: str
    parts: Parts
    offset: int


def parse_path(text: str) -> Parts:
    """Split a dotted path, or say why it is none."""
    text = text.strip()
    if not text:
        raise BadPath("is empty; write a dotted path such as inputs.topic")
    if not _PATH.fullmatch(text):
        raise BadPath(
            f"{_short(text)} is not a dotted path such as inputs.topic; expressions are not supported"
        )
    parts = tuple(text.split("."))
    if len(parts) > MAX_PATH_PARTS:
        raise BadPath(f"{_short(text)} has {len(parts)} parts; at most {MAX_PATH_PARTS} are allowed")
    return parts


def parse_template(text: str) -> tuple[str | PathPart, ...]:
    """Split a text into literals and paths; `\\{{` is a literal `{{`."""
    parts, problems = scan_template(text)
    if problems:
        raise problems[0]
    return parts


@lru_cache(maxsize=2048)
def scan_template(text: str) -> tuple[tuple[str | PathPart, ...], tuple[BadTemplate, ...]]:
    """The parts of a template, and everything that cannot be read in it."""
    found: list[str | PathPart] = []
    problems: list[BadTemplate] = []
    literal = ""
    position = 0
    while match := _OPEN.search(text, position):
        literal += text[position : match.start()]
        position = match.end()
        if match.group().startswith("\\"):
            literal += "{{"
            continue
        if literal:
            found.append(literal)
            literal = ""
        end = text.find("}}", position)
        reopened = text.find("{{", position, end if end >= 0 else len(text))
        if end < 0 or reopened >= 0:
            problems.append(BadTemplate(_UNCLOSED, match.start()))
            if end < 0:
                return tuple(found), tuple(problems)
            continue
        inside = text[position:end].strip()
        position = end + 2
        try:
            found.append(PathPart(inside, parse_path(inside), match.start()))
        except BadPath as error:
            problems.append(BadTemplate(str(error) if inside else f"'{{{{ }}}}' {error}", match.start()))
    literal += text[position:]
    if literal:
        found.append(literal)
    return tuple(found), tuple(problems)


def canonical(parts: Parts, blocks: Collection[str], carried: Collection[str] = ()) -> Parts:
    """The one spelling of a path; `blocks` are the known block ids, `carried` names of carried context."""
    root = parts[0]
    if root in INPUT_ROOTS:
        return ("inputs", *parts[1:])
    if root in BLOCK_ROOTS:
        return _block_path(parts, blocks)
    if root == "run":
        if len(parts) != 2 or parts[1] not in RUN_FIELDS:
            raise BadPath(
                f"'{'.'.join(parts)}' is unknown; a run has {_listed(f'run.{f}' for f in RUN_FIELDS)}"
            )
        return parts
    if root == "round":
        if len(parts) > 1:
            raise BadPath("'round' is a number and has no fields")
        return parts
    if root in blocks:
        return _short_block_path(parts)
    if root in carried:
        return parts
    raise BadPath(f"unknown name '{root}'{did_you_mean(root, [*ROOTS, *blocks, *carried])}")


def _block_path(parts: Parts, blocks: Collection[str]) -> Parts:
    root = parts[0]
    if len(parts) < 2:
        raise BadPath(f"'{root}' alone is not a value; name a block, such as {root}.<id>.output")
    if parts[1] not in blocks:
        raise BadPath(f"unknown block '{parts[1]}'{did_you_mean(parts[1], blocks)}")
    if root == "results":
        return _short_block_path(parts[1:])
    if len(parts) < 3:
        raise BadPath(f"'{'.'.join(parts)}' is not a value; add one of {_listed(BLOCK_FIELDS)}")
    if parts[2] not in BLOCK_FIELDS:
        hint = (
            did_you_mean(parts[2], BLOCK_FIELDS)
            or f" For a field of JSON output write blocks.{parts[1]}.json.{parts[2]}"
        )
        raise BadPath(f"a block has {_listed(BLOCK_FIELDS)}, not '{parts[2]}'.{hint.removeprefix('.')}")
    if len(parts) > 3 and parts[2] != "json":
        raise BadPath(
            f"'{'.'.join(parts[:3])}' has no fields; write blocks.{parts[1]}.json.{'.'.join(parts[3:])}"
        )
    return parts


def _short_block_path(parts: Parts) -> Parts:
    """`a`, `a.exit` or `a.title` as a path below `blocks`."""
    if len(parts) == 1:
        return ("blocks", parts[0], "output")
    if parts[1] == "json" or (parts[1] in BLOCK_FIELDS and len(parts) == 2):
        return ("blocks", *parts)
    return ("blocks", parts[0], "json", *parts[1:])


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`. Did you mean 'x'?` when something known is close, else nothing."""
    close = closest(name, known)
    return f". Did you mean '{close}'?" if close is not None else ""


def suggestion(name: object, known: Collection[str], listed: str = "known are") -> str:
    """How a message about an unknown name goes on: with the closest one, else with all there are."""
    return did_you_mean(name, known) or f"; {listed} {', '.join(known) or 'none'}"


def closest(name: object, known: Iterable[str]) -> str | None:
    """The known name most similar to this one, if any is close."""
    if not isinstance(name, str) or len(name) > 200:
        return None
    from rapidfuzz import fuzz, process  # loaded only when there is an error

    by_folded = {one.casefold(): one for one in known}
    found = process.extractOne(name.casefold(), list(by_folded), scorer=fuzz.ratio, score_cutoff=60)
    return by_folded[found[0]] if found else None


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
