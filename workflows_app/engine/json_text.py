"""Reading JSON that others wrote: as the standard has it, and nothing in it that a table could not keep."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from workflows_app.engine.values.outputs import storable

# Far below what a recursive walk over the value can take.
MOST_LEVELS: Final = 200


def strict_json(text: str) -> Any:
    """The value of a JSON text; a ValueError says what is wrong: NaN, a number beyond floats, too deep."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        is_too_deep = _levels_exceed(value, MOST_LEVELS)
    except RecursionError:
        is_too_deep = True
    if is_too_deep:
        raise ValueError(f"nested too deep; {MOST_LEVELS} levels are allowed")
    return value


def storable_json(text: str) -> Any:
    """The same, with U+FFFD for what is no character: escapes can write NUL and halves of surrogate pairs."""
    return storable(strict_json(text))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:30]} is too large a number")
    return value


def _levels_exceed(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        items = (item for one in level for item in (one.values() if isinstance(one, dict) else one))
        level = [item for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True
