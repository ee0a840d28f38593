"""Read each block by itself: its kind, its keys, its exits, its code and its assertions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from workflows_app.engine.definition import DEFAULT_EXIT
from workflows_app.engine.parse import KeyPath, describe
from workflows_app.engine.schema.block_keys import BLOCK_SHAPES, BLOCK_TYPE, COMMON_KEYS, WHEN_ALIASES
from workflows_app.engine.schema.kinds import FREE_ID, Checker, Kind
from workflows_app.engine.schema.shapes import Shape, placed
from workflows_app.engine.values.paths import closest, suggestion

CheckAssertions = Callable[[list[Any]], Iterable[Any]]
"""Returns problems with `path` ("[2].threshold") and `message`."""

MAX_BLOCKS: Final = 2000
# The exits some kinds take by themselves.
OWN_EXITS: Final = {"gate": ("pass", "fail"), "workflow": ("completed", "error")}
# Checks the keys that every block may have, for a block whose type is unknown.
_ANY_BLOCK: Final = Shape("block", COMMON_KEYS, extra=Kind())
_PROBLEM_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass
class Draft:
    """A block as far as it could be read."""

    id: str
    kind: str | None
    values: dict[str, Any]
    at: KeyPath
    raw: dict[str, Any]
    is_broken: bool = False  # names a block that does not exist, so its place in the graph is uncertain
    exits: frozenset[str] | None = field(default=frozenset())  # None: any

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)


def read_blocks(blocks: dict[str, Any], to: Checker) -> dict[str, Draft]:
    """Every block that is at least a mapping."""
    drafts: dict[str, Draft] = {}
    if not blocks:
        to.report(("blocks",), "is empty; a workflow needs at least one block")
    if len(blocks) > MAX_BLOCKS:
        to.report(("blocks",), f"has {len(blocks)} blocks; at most {MAX_BLOCKS} are allowed")
        return drafts
    for block_id, raw in blocks.items():
        at = ("blocks", block_id)
        FREE_ID.check(block_id, at, to)
        if not isinstance(raw, dict):
            to.report(at, f"must be a mapping with `type`, not {describe(raw)}")
            drafts[block_id] = Draft(block_id, None, {}, at, {}, exits=None)
            continue
        drafts[block_id] = _read_block(block_id, raw, at, to)
    return drafts


def _read_block(block_id: str, raw: dict[str, Any], at: KeyPath, to: Checker) -> Draft:
    written = raw.get("type")
    kind: str | None
    if isinstance(written, str) and (written in BLOCK_SHAPES or written in BLOCK_TYPE.aliases):
        kind = BLOCK_TYPE.aliases.get(written, written)
        values = BLOCK_SHAPES[kind].check_keys(raw, at, to)
    else:
        if written is not None:
            BLOCK_TYPE.check(written, (*at, "type"), to)
        guess = closest(written, [*BLOCK_SHAPES, *BLOCK_TYPE.aliases])
        kind = BLOCK_TYPE.aliases.get(guess, guess) if guess else None
        shape = BLOCK_SHAPES[kind] if kind else _ANY_BLOCK
        # The type has been dealt with; its place is taken by one that is right.
        values = shape.check_keys({**raw, "type": kind or "llm"} if written is not None else raw, at, to)
    draft = Draft(block_id, kind, values, at, raw)
    _check_exits(draft, to)
    if kind == "gate":
        _check_gate(draft, to)
    elif kind == "dispatch":
        check_unique(draft.get("exits", ()), (*at, "exits"), "id", to)
    return draft


def check_unique(items: tuple[dict[str, Any], ...], at: KeyPath, key: str, to: Checker) -> None:
    """Report names that occur twice in a list of mappings."""
    seen: set[str] = set()
    for index, item in placed(items):
        if item[key] in seen:
            to.report((*at, index, key), f"the {key} '{item[key]}' is already taken above")
        seen.add(item[key])


def _check_gate(draft: Draft, to: Checker) -> None:
    targets = [key for key in ("pass", "fail") if key in draft.values]
    if len(targets) == 1:
        missing = "fail" if targets == ["pass"] else "pass"
        to.report(
            (*draft.at, targets[0]), f"a gate has both `pass` and `fail` or neither; `{missing}` is missing"
        )


def _check_exits(draft: Draft, to: Checker) -> None:
    """Find the exits a block can take, and errors in how it chooses."""
    declared: set[str] = set()
    if draft.kind != "dispatch":
        exits = draft.get("exits", ())
        check_unique(exits, (*draft.at, "exits"), "id", to)
        declared = {exit_["id"] for exit_ in exits}
    chosen: set[str] = set()
    if "exit_conditions" in draft.values and "routes" in draft.values:
        to.report((*draft.at, "routes"), "`routes` and `exit_conditions` both choose the exit; keep one")
    for key in ("exit_conditions", "routes"):
        if key in draft.values:
            chosen |= _check_cases(draft, key, declared, to)
    known = declared | chosen
    if DEFAULT_EXIT in known:
        to.report((*draft.at, "exits"), f"'{DEFAULT_EXIT}' cannot be an exit; it stands for every other one")
    if draft.kind in OWN_EXITS:
        draft.exits = frozenset({*OWN_EXITS[draft.kind], *known})
    elif known or draft.kind in ("llm", "dispatch"):
        draft.exits = frozenset(known)
    else:
        draft.exits = None


def _check_cases(draft: Draft, key: str, declared: set[str], to: Checker) -> set[str]:
    at = (*draft.at, key)
    defaults = 0
    chosen = set()
    for index, case in placed(draft.get(key)):
        chosen.add(case["exit"])
        is_default = case.get("default", False)
        defaults += is_default
        if is_default and "when" in case:
            to.report((*at, index), "has both `when` and `default: true`; keep one")
        elif not is_default and "when" not in case and not _is_written(draft.raw, key, index):
            to.report((*at, index), "needs `when`, or `default: true`")
        if is_default and defaults == 2:
            to.report((*at, index, "default"), "only one case can be the default")
        if declared and case["exit"] not in declared and case["exit"] != DEFAULT_EXIT:
            hint = suggestion(case["exit"], sorted(declared), "declared are")
            to.report((*at, index), f"exit '{case['exit']}' is not among the block's `exits`{hint}")
    return chosen


def _is_written(raw: dict[str, Any], key: str, index: int) -> bool:
    """Whether a case has a condition, however wrong."""
    cases = raw[key]
    written = cases[index] if len(cases) > index else None
    return isinstance(written, dict) and any(name in written for name in ("when", *WHEN_ALIASES))


def check_assertions_of(
    configs: Any, at: KeyPath, to: Checker, check_assertions: CheckAssertions | None
) -> None:
    """Check assertions with the assertion engine; without it, only that each is a mapping with a type."""
    if check_assertions is not None:
        for problem in check_assertions(configs):
            to.report((*at, *problem_path(problem.path)), problem.message)
        return
    for index, config in enumerate(configs):
        if not isinstance(config, dict):
            to.report((*at, index), f"must be a mapping with `type`, not {describe(config)}")
        elif not isinstance(config.get("type"), str):
            to.report((*at, index, "type"), "is missing; an assertion names its type")


def problem_path(path: str) -> KeyPath:
    """`[2].threshold` as keys."""
    return tuple(
        int(found.group(1)) if found.group(1) is not None else found.group(2)
        for found in _PROBLEM_PART.finditer(path)
    )


def check_code_of(draft: Draft, to: Checker) -> None:
    """Lint a code block: it compiles, defines `main(data)`, imports what it may."""
    code = draft.get("code")
    if code is None:
        return
    from workflows_app.engine.sandbox.lint import check_code  # only a document with code pays for it

    for fault in check_code(code, draft.get("allowed_imports")):
        to.report((*draft.at, "code"), fault.message, fault.line or 1)
