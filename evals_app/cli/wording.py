"""How an assertion and its answer read in a few words, the same in every report."""

from __future__ import annotations

import json
from typing import Any

from evals_app.cases import BlockScore, Check

_LIMITS = {"cost": "≤ ${}", "latency": "≤ {} ms"}


def shorten(text: str, longest: int) -> str:
    """A text on one line, its end cut off where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: max(longest - 1, 0)] + "…"


def expected_text(check: Check, longest: int = 60) -> str:
    """What an assertion asks for: `contains "Ada"`, `$.total equals 119`, `cost ≤ $0.05`."""
    config = check.config
    name = str(config.get("type", "?"))
    threshold = config.get("threshold")
    limit = _LIMITS.get(name.removeprefix("not-"))
    if limit is not None:
        return shorten(f"{name} {limit.format(threshold)}", longest)
    parts = [name]
    if config.get("transform"):
        parts.insert(0, str(config["transform"]).removeprefix("json_path:"))
    if "value" in config:
        parts.append(_value_text(config["value"]))
    if threshold is not None:
        parts.append(f"(threshold {threshold})")
    return shorten(" ".join(parts), longest)


def measured_text(block: BlockScore, check: Check | None, longest: int = 60) -> str:
    """What was found instead: the number behind the verdict, else the output."""
    if check is None:
        return "no output"
    if check.result.error:
        return "could not be checked"
    if check.result.measured is not None:
        return f"{check.result.measured:.6g}"
    return shorten(json.dumps(block.output or "", ensure_ascii=False), longest)


def reason_text(block: BlockScore, check: Check | None) -> str:
    """Why, in a sentence."""
    return check.result.reason if check else f"{block.error}"


def _value_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
