"""Runs as files: CSV for a spreadsheet, JSON Lines for a program; made while they are sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from workflows_app.models import Run
from workflows_app.summaries import run_summary

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
    told = run_summary(run)
    counts = told["eval_counts"]
    told |= {f"assertions_{word}": count for word, count in counts.items()}
    told |= {"prompt_tokens": run.prompt_tokens, "completion_tokens": run.completion_tokens}
    told["error"] = (run.error or {}).get("message", "")
    return [told[name] for name in CSV_COLUMNS]


def json_lines(chunks: Iterable[list[Run]]) -> Iterator[str]:
    """One run per line, as the API tells it."""
    for runs in chunks:
        yield "".join(json.dumps(run_summary(run), ensure_ascii=False) + "\n" for run in runs)


def download(
    request: HttpRequest, pieces: Iterator[str], filename: str, content_type: str
) -> StreamingHttpResponse:
    """Sent as it is made; an ASGI server would otherwise first collect a plain iterator as a whole."""
    streamed: Any = _in_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    headers = {"Content-Disposition": f'attachment; filename="{filename}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(streamed, content_type=f"{content_type}; charset=utf-8", headers=headers)


async def _in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    take = sync_to_async(lambda: next(pieces, None))
    while (piece := await take()) is not None:
        yield piece
