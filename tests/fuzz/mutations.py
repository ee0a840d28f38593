"""Real things, broken in a few places: values of another kind, keys gone or doubled, depth, odd characters."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

ODD_TEXTS = [
    "", " ", "\0", "a\0b", "\ud800", "\udfff tail", "\u202e", "\ufeff", "\u2028", "İ", "ß", "🙂" * 50, "e\u0301",
    "null", "NaN", "-0", "1e999", "9" * 400, "٣", "²", "0x10", "12:30", "on", "<<", "*a", "&a b", "!!python/object:os.system x",
    "../../etc/passwd", "<script>alert(1)</script>", "'; DROP TABLE x; --", "%00", "%s", "{{ inputs.x }}", "{{", "{% x %}",
    "$", "json_path:$..*", "json_path:$[", "(a+)+$", "(?P<x>", "[", "\\", "a" * 10_000,
    "0001-01-01", "9999-12-31", "2026-02-30", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    "2026-01-31T12:00:00Z", "2026-01-31T12:00", "24h", "00000000-0000-0000-0000-000000000000",
]  # fmt: skip
ODD_NUMBERS = [
    0, -1, 1, 2, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400,
    0.0, -0.0, 0.1, 1e-320, 1e17, 1e308, -1e308,
]  # fmt: skip
ODD_KEYS = [
    "", " ", "type", "id", "value", "name", "__proto__", "a.b", "a[0]", "\0", "\ud800", "é", "on", "1", "x" * 300,
    "$ref", "$id", "allOf", "pattern", "default", "error", "total",
]  # fmt: skip

texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=12)
scalars = (
    texts
    | st.sampled_from(ODD_NUMBERS)
    | st.none()
    | st.booleans()
    | st.integers(-3, 100)
    | st.floats(allow_nan=False, allow_infinity=False)
)
keys = st.sampled_from(ODD_KEYS) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def nested(value: Any, levels: int, *, in_lists: bool) -> Any:
    """A value below so many lists or maps."""
    for _ in range(levels):
        value = [value] if in_lists else {"a": value}
    return value


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys or indexes."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        box = waiting.pop()
        steps = list(box) if isinstance(box, dict) else range(len(box))
        for step in steps:
            found.append((box, step))
            if isinstance(box[step], dict | list):
                waiting.append(box[step])
    return found


@st.composite
def broken(draw: Any, tree: Any, faults: int = 4, deepest: int = 250) -> Any:
    """A copy of a tree of maps and lists with up to so many things wrong."""
    root = [copy.deepcopy(tree)]
    for _ in range(draw(st.integers(1, faults))):
        everywhere = places(root)
        box, step = everywhere[draw(st.integers(0, len(everywhere) - 1))]
        how = draw(st.sampled_from(["other", "other", "gone", "key", "twice", "swap", "deep", "many"]))
        if how == "other":
            box[step] = draw(values)
        elif how == "gone" and box is not root:
            del box[step]
        elif how == "key" and isinstance(box, dict):
            box[draw(keys)] = draw(values)
        elif how == "twice" and isinstance(box, list) and box is not root:
            box.insert(step, copy.deepcopy(box[step]))
        elif how == "swap":
            other, place = everywhere[draw(st.integers(0, len(everywhere) - 1))]
            box[step] = copy.deepcopy(other[place])
        elif how == "deep":
            levels = draw(st.sampled_from([3, 30, deepest]))
            box[step] = nested(box[step], levels, in_lists=draw(st.booleans()))
        elif how == "many":
            most = 20 if isinstance(box[step], dict | list) else 1500
            box[step] = [copy.deepcopy(box[step])] * draw(st.sampled_from([2, most]))
    return root[0]


@st.composite
def broken_text(draw: Any, text: str, faults: int = 4) -> str:
    """A text with lines gone, doubled or moved, and odd characters put in."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, faults))):
        if not lines:
            break
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(["gone", "twice", "moved", "put in", "value", "indent", "cut"]))
        line = lines[at]
        if how == "gone":
            del lines[at]
        elif how == "twice":
            lines.insert(at, line)
        elif how == "moved":
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
        elif how == "put in":
            column = draw(st.integers(0, len(line)))
            lines[at] = line[:column] + draw(texts) + line[column:]
        elif how == "value" and ":" in line:
            lines[at] = line.partition(":")[0] + ": " + str(draw(scalars)) + "\n"
        elif how == "indent":
            lines[at] = draw(st.sampled_from([" ", "    ", "\t", "- ", "? ", "&a ", "!!map "])) + line
        elif how == "cut":
            lines[at] = line[: draw(st.integers(0, len(line)))]
    return "".join(lines)
