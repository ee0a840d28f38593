"""What a block gave, as the text every later step reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from workflows_app.engine.paths import INPUT_ROOTS
from workflows_app.engine.results import BlockFailure

MAX_CODE_OUTPUT_BYTES: Final = 1024 * 1024
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
        raise BlockFailure(
            "bad_output", f"The output cannot be written as JSON: {error}.", is_retryable=False
        ) from None


T = TypeVar("T")


def storable(value: T) -> T:
    """A value whose texts every database takes: NUL and halves of surrogate pairs become U+FFFD."""
    return cast("T", _storable(value))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        if "\0" in value:
            value = value.replace("\0", "\ufffd")
        if not value.isascii() and _SURROGATE.search(value):
            value = _SURROGATE.sub("\ufffd", value)
        return value
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value


def exit_of(value: Any) -> str | None:
    """The exit an output asks for: a text under `exit_handle` in a map."""
    handle = value.get("exit_handle") if isinstance(value, dict) else None
    return handle if isinstance(handle, str) and handle else None


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the path a `workflow` block's `outputs` give them, as the block's output holds them."""
    found: dict[str, Any] = {}
    for target, value in values.items():
        *above, name = output_parts(target)
        box = found
        for part in above:
            if not isinstance(box.get(part), dict):
                box[part] = {}
            box = box[part]
        box[name] = value
    return found


def output_parts(target: str) -> list[str]:
    """Where in the output a path of `outputs` leads: `shared_memory.a` and `results.a` are its field `a`."""
    root, *rest = target.split(".")
    return rest if rest and root in (*INPUT_ROOTS, "results") else [root, *rest]


def code_output(value: Any) -> tuple[str, str | None]:
    """The text and the exit of what code returned; too much of it fails the block."""
    text = output_text(value)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise BlockFailure(
            "bad_output", "The output has half a surrogate pair in it and is no text.", is_retryable=False
        ) from None
    if size > MAX_CODE_OUTPUT_BYTES:
        raise BlockFailure(
            "output_too_large",
            f"The output has {size:,} bytes; at most {MAX_CODE_OUTPUT_BYTES:,} are allowed.",
            is_retryable=False,
        )
    return text, exit_of(value)
