"""The key tables of docs/workflows.md, from the same tables the validator reads.

`python -m workflows_app.engine.reference docs/workflows.md` renews them in place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from .block_keys import (
    BLOCK_KEYS,
    BRANCH,
    CARRY,
    COMMON_KEYS,
    CONDITION,
    CONDITION_GROUP,
    EXIT_CASE,
    RETRY,
    ROUTE,
)
from .conditions import OPERATORS
from .definition import (
    BLOCK_DEFS,
    BaseBlockDef,
    CarryContext,
    EvalCase,
    EvalSuite,
    EvidenceSettings,
    InputField,
    Limits,
    RetryConfig,
    SoulDef,
)
from .keys import DOCUMENT, EVAL, EVAL_CASE, EVIDENCE, INTERFACE, SOUL_SHAPE, WORKFLOW
from .shapes import LIMITS, Key, ListOf, Shape

BEGIN: Final = "<!-- generated: python -m workflows_app.engine.reference docs/workflows.md -->"
END: Final = "<!-- end of generated -->"
_REGION: Final = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def renewed(text: str) -> str:
    """A page with its generated region brought up to date."""
    return _REGION.sub(lambda _: f"{BEGIN}\n\n{tables()}\n{END}", text)


def tables() -> str:
    """Every table, with its heading."""
    inputs, outputs = (_items(INTERFACE.keys[key]) for key in ("inputs", "outputs"))
    sections: list[tuple[str, Mapping[str, Key], type | None]] = [
        ("### The document", DOCUMENT.keys, None),
        ("### `workflow`", WORKFLOW.keys, None),
        ("### `interface.inputs`", inputs.keys, InputField),
        ("### `interface.outputs`", outputs.keys, None),
        ("### `souls.<id>`", SOUL_SHAPE.keys, SoulDef),
        ("### Every block", COMMON_KEYS, BaseBlockDef),
        *((_block_heading(kind), keys, BLOCK_DEFS[kind]) for kind, keys in BLOCK_KEYS.items()),
        ("### `dispatch`: `exits[]`", BRANCH.keys, None),
        ("### `loop`: `carry_context`", CARRY.keys, CarryContext),
        ("### `retry_config`", RETRY.keys, RetryConfig),
        ("### `limits`, of a block or the document", LIMITS.keys, Limits),
        ("### `exit_conditions[]`", EXIT_CASE.keys, None),
        ("### `routes[]`", ROUTE.keys, None),
        ("### A condition", CONDITION.keys, None),
        ("### A group of conditions", CONDITION_GROUP.keys, None),
        ("### `eval`", EVAL.keys, EvalSuite),
        ("### `eval.cases[]`", EVAL_CASE.keys, EvalCase),
        ("### `evidence`", EVIDENCE.keys, EvidenceSettings),
    ]
    parts = [f"{heading}\n\n{_table(keys, definition)}" for heading, keys, definition in sections]
    parts.append(f"### Operators\n\n{_operators()}")
    return "\n".join(parts)


def _items(key: Key) -> Shape:
    if not isinstance(key.kind, ListOf) or not isinstance(key.kind.item, Shape):
        raise TypeError("not a list of mappings")
    return key.kind.item


def _block_heading(kind: str) -> str:
    also = "".join(f", also `{alias}`" for alias in BLOCK_DEFS[kind].aliases)
    return f"### `{kind}`{also}"


def _table(keys: Mapping[str, Key], definition: type | None) -> str:
    defaults = {field.name: field.default for field in fields(definition)} if definition else {}
    rows = [
        (
            " or ".join(f"`{spelling}`" for spelling in (name, *key.aliases)),
            key.kind.name,
            "required" if key.is_required else _shown(defaults.get(key.attribute or name, MISSING)),
            key.description,
        )
        for name, key in keys.items()
    ]
    return _rows(("key", "value", "default", "what it does"), rows)


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default:g}"
    return f"`{default}`" if isinstance(default, (str, int)) and default != "" else ""


def _operators() -> str:
    return _rows(
        ("operator", "also", "holds when the value at `eval_key`"),
        [
            (f"`{one.name}`", ", ".join(f"`{alias}`" for alias in one.aliases), one.description)
            for one in OPERATORS.values()
        ],
    )


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
