"""Runs as files: CSV for a spreadsheet, JSON Lines for a program; made while they are sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from workflows_app.live.frames import run_summary
from workflows_app.models import Run

CSV_COLUMNS = (
    "id", "workflow", "number", "version", "status", "source", "environment", "created_at", "started_at",
    "finished_at", "duration_ms", "cost_usd", "prompt_tokens", "completion_tokens", "eval_score", "eval_passed",
    "assertions_passed", "assertions_failed", "assertions_error", "regression_count", "error",
)  # fmt: skip
# A spreadsheet takes a cell that begins like this for a formula.
RISKY = ("=", "+", "-", "@", "\t", "\r")


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet runs: text that looks like a formula gets an apostrophe before it."""
    if isinstance(value, str) and value.lstrip(" \n").startswith(RISKY):
        return "'" + value
    return value


def csv_lines(chunks: Iterable[list[Run]]) -> Iterator[str]:
    """The header, then one piece of text per chunk."""
    yield _csv([CSV_COLUMNS])
    for runs in chunks:
        yield _csv([harmless(cell) for cell in _cells(run)] for run in runs)


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cells(run: Run) -> list[Any]:
    row = run_summary(run)
    counts = row["eval_counts"]
    row |= {f"assertions_{word}": count for word, count in counts.items()}
    row |= {"prompt_tokens": run.prompt_tokens, "completion_tokens": run.completion_tokens}
    row["error"] = (run.error or {}).get("message", "")
    return [row[name] for name in CSV_COLUMNS]


def json_lines(chunks: Iterable[list[Run]]) -> Iterator[str]:
    """One run per line, as in the API."""
    for runs in chunks:
        yield "".join(json.dumps(run_summary(run), ensure_ascii=False) + "\n" for run in runs)
