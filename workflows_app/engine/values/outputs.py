"""What a block gave, as the text every later step reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.paths import INPUT_ROOTS

MAX_CODE_OUTPUT_BYTES: Final = 1024 * 1024
T = TypeVar("T")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def output_text(value: Any) -> str:
    """Text as it is, nothing as an empty text, anything else as JSON; what is no JSON fails the block."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BlockFailure("bad_output", f"The output cannot be written as JSON: {error}.") from None


def storable(value: T) -> T:
    """A value whose texts every database takes: NUL and halves of surrogate pairs become U+FFFD."""
    found: Any = value
    if isinstance(value, str):
        found = value.replace("\0", "\ufffd")
        if not found.isascii():
            found = _SURROGATE.sub("\ufffd", found)
    elif isinstance(value, dict):
        found = {storable(key): storable(item) for key, item in value.items()}
    elif isinstance(value, list):
        found = [storable(item) for item in value]
    return cast("T", found)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the path a `workflow` block's `outputs` give them; `shared_memory.a` and `results.a` are field `a`."""
    found: dict[str, Any] = {}
    for target, value in values.items():
        root, *rest = target.split(".")
        *above, name = rest if rest and root in (*INPUT_ROOTS, "results") else (root, *rest)
        box = found
        for part in above:
            if not isinstance(box.get(part), dict):
                box[part] = {}
            box = box[part]
        box[name] = value
    return found


def written_inputs(targets: Iterable[str]) -> set[str]:
    """The names beside the run's inputs that a `workflow` block's `outputs` write."""
    parts = (target.partition(".") for target in targets)
    return {rest.partition(".")[0] for root, _, rest in parts if root in INPUT_ROOTS and rest}


def code_output(value: Any) -> tuple[str, str | None]:
    """The text of what code returned, and the exit a map of it names; too much of it fails the block."""
    text = output_text(value)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise BlockFailure(
            "bad_output", "The output has half a surrogate pair in it and is no text."
        ) from None
    if size > MAX_CODE_OUTPUT_BYTES:
        raise BlockFailure(
            "output_too_large",
            f"The output has {size:,} bytes; at most {MAX_CODE_OUTPUT_BYTES:,} are allowed.",
        )
    handle = value.get("exit_handle") if isinstance(value, dict) else None
    return text, handle if isinstance(handle, str) and handle else None
