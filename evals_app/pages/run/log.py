"""A run's history as lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import Truncator

from evals_app.monitoring.regressions import KIND_WORDS
from workflows_app.display import formats
from workflows_app.models import EventName, Run, RunEvent

LONGEST_LINE = 120


@dataclass(frozen=True)
class LogLine:
    """One event: its number, how long after the start, what happened."""

    seq: int
    after: str
    text: str
    tone: str = ""
    is_news: bool = False  # an open page shows it as a toast


def log_lines(run: Run, events: Iterable[RunEvent]) -> list[LogLine]:
    """The history in words."""
    start = run.started_at or run.created_at
    return [
        LogLine(
            event.seq,
            formats.duration(max((event.at - start).total_seconds() * 1000, 0)),
            Truncator(words).chars(LONGEST_LINE),
            tone,
            event.event == EventName.REGRESSION_FOUND,
        )
        for event in events
        for words, tone in [_words(event.event, event.data)]
    ]


def announcement(run: Run, events: Sequence[RunEvent]) -> str:
    """What a screen reader says: the latest of these events that matters, in a sentence."""
    sentences = (_sentence(run, event.event, event.data) for event in reversed(events))
    return next(filter(None, sentences), "")


def _sentence(run: Run, event: str, data: dict[str, Any]) -> str:
    match event:
        case EventName.NODE_FAILED if not data.get("will_retry"):
            return f"{data['node_id']} failed."
        case EventName.NODE_EVAL_COMPLETE if not data["passed"]:
            results = data["assertions"]
            bad = sum(not one["passed"] for one in results)
            return f"{data['node_id']}: {bad} of {len(results)} assertions did not pass."
        case EventName.RUN_COMPLETED | EventName.RUN_FAILED | EventName.RUN_CANCELLED:
            passed = data.get("eval_passed")
            verdict = "" if passed is None else f", {'all' if passed else 'not all'} assertions passed"
            return f"Run #{run.number} {data['status']}{verdict}."
    return ""


def _words(event: str, data: dict[str, Any]) -> tuple[str, str]:
    name = _node_name(data)
    match event:
        case EventName.NODE_COMPLETED:
            return f"{name} completed in {formats.duration(data.get('latency_ms'))}", ""
        case EventName.NODE_FAILED:
            why = (data.get("error") or {}).get("message", "")
            if data.get("will_retry"):
                why = f"{why.removesuffix('.')}; will be tried again"
            return f"{name} failed: {why}", "bad"
        case EventName.NODE_EVAL_COMPLETE:
            return _graded(name, data)
        case EventName.REGRESSION_FOUND:
            kind = KIND_WORDS.get(str(data.get("kind")), "something").lower()
            return f"regression found: {kind} of {data.get('node_id')}", "bad"
        case EventName.NODE_STARTED:
            return f"{name} started", ""
        case EventName.RUN_FAILED:
            return "run failed", "bad"
    return event.replace("_", " "), ""


def _node_name(data: dict[str, Any]) -> str:
    words = str(data.get("node_id", ""))
    if data.get("iteration", 1) > 1:
        words += f" (round {data['iteration']})"
    if data.get("attempt", 1) > 1:
        words += f" (attempt {data['attempt']})"
    return words


def _graded(name: str, data: dict[str, Any]) -> tuple[str, str]:
    results = data.get("assertions") or []
    bad = [one["type"] for one in results if not one["passed"]]
    words = f"{name} scored {formats.score(data.get('eval_score'))}"
    if data.get("error"):
        return f"{name} could not be evaluated: {data['error']}", "warn"
    return (f"{words}; not passed: {', '.join(bad)}", "bad") if bad else (words, "")
