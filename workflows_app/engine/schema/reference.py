"""The key tables of docs/workflows.md, from the same tables the validator reads.

`python -m workflows_app.engine.schema.reference docs/workflows.md` renews them in place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from workflows_app.engine import definition
from workflows_app.engine.schema import block_keys, document_keys
from workflows_app.engine.schema.shapes import LIMITS, Key
from workflows_app.engine.values.conditions import OPERATORS

BEGIN: Final = "<!-- generated: python -m workflows_app.engine.schema.reference docs/workflows.md -->"
END: Final = "<!-- end of generated -->"
_REGION: Final = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def renewed(text: str) -> str:
    """A page with its generated region brought up to date."""
    return _REGION.sub(lambda _: f"{BEGIN}\n\n{tables()}\n{END}", text)


def tables() -> str:
    """Every table, with its heading."""
    sections: list[tuple[str, Mapping[str, Key], type | None]] = [
        ("### The document", document_keys.DOCUMENT.keys, None),
        ("### `workflow`", document_keys.WORKFLOW.keys, None),
        ("### `interface.inputs`", document_keys.INTERFACE_INPUT.keys, definition.InputField),
        ("### `interface.outputs`", document_keys.INTERFACE_OUTPUT.keys, None),
        ("### `souls.<id>`", document_keys.SOUL_SHAPE.keys, definition.SoulDef),
        ("### Every block", block_keys.COMMON_KEYS, definition.BaseBlockDef),
        *(
            (
                f"### {_names(kind, definition.BLOCK_DEFS[kind].aliases, ', also ')}",
                keys,
                definition.BLOCK_DEFS[kind],
            )
            for kind, keys in block_keys.BLOCK_KEYS.items()
        ),
        ("### `dispatch`: `exits[]`", block_keys.BRANCH.keys, None),
        ("### `loop`: `carry_context`", block_keys.CARRY.keys, definition.CarryContext),
        ("### `retry_config`", block_keys.RETRY.keys, definition.RetryConfig),
        ("### `limits`, of a block or the document", LIMITS.keys, definition.Limits),
        ("### `exit_conditions[]`", block_keys.EXIT_CASE.keys, None),
        ("### `routes[]`", block_keys.ROUTE.keys, None),
        ("### A condition", block_keys.CONDITION.keys, None),
        ("### A group of conditions", block_keys.CONDITION_GROUP.keys, None),
        ("### `eval`", document_keys.EVAL.keys, definition.EvalSuite),
        ("### `eval.cases[]`", document_keys.EVAL_CASE.keys, definition.EvalCase),
        ("### `evidence`", document_keys.EVIDENCE.keys, definition.EvidenceSettings),
    ]
    parts = [f"{heading}\n\n{_table(keys, definition)}" for heading, keys, definition in sections]
    operators = [
        (f"`{one.name}`", ", ".join(f"`{alias}`" for alias in one.aliases), one.description)
        for one in OPERATORS.values()
    ]
    head = ("operator", "also", "holds when the value at `eval_key`")
    return "\n".join([*parts, f"### Operators\n\n{_rows(head, operators)}"])


def _names(name: str, aliases: Iterable[str], between: str) -> str:
    return between.join(f"`{spelling}`" for spelling in (name, *aliases))


def _table(keys: Mapping[str, Key], definition: type | None) -> str:
    defaults = {field.name: field.default for field in fields(definition)} if definition else {}
    rows = [
        (
            _names(name, key.aliases, " or "),
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


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
