"""What the pages of eval suites print, read with as few queries for five hundred cases as for one."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.utils.safestring import SafeString

from evals_app import charts
from evals_app.cases.compare import CaseChange
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun
from evals_app.pages.outputs import read_text
from evals_app.pages.run.inspector import shown_assertion
from evals_app.suites.history import Mark
from workflows_app.display.querystring import PAGE_SIZE

MOST_OPEN = 5  # cases
MOST_BLOCKS = 20  # of an open case
_WORST_FIRST = (EvalStatus.FAILED, EvalStatus.ERROR, EvalStatus.SKIPPED, EvalStatus.PASSED)
CHANGES = {
    "worse": ("Passed before, fails now", "bad", "trend-down"),
    "better": ("Failed before, passes now", "good", "trend-up"),
    "removed": ("No longer there", "idle", "none"),
    "added": ("New", "accent", "plus"),
    "same": ("Unchanged", "idle", "equal"),
}


def strip_of(marks: list[Mark], what: str) -> SafeString:
    """Marks as a strip of green and red, in words for those who cannot see it."""
    words = [mark.status if mark.status in ("passed", "failed", "error") else None for mark in marks]
    passed = words.count("passed")
    title = f"{what}: passed in {passed} of the last {len(words)}" if words else f"{what}: not tried yet"
    return charts.strip(words, title=title)


def shown_case(result: EvalCaseResult) -> dict[str, Any]:
    """A stored case with the attempt that shows why; of many blocks, those that failed first."""
    details: dict[str, Any] = result.details
    attempts = details.get("attempts", [])
    attempt = next((one for one in attempts if one["status"] != "passed"), attempts[-1] if attempts else None)
    passed = sum(one["status"] == "passed" for one in attempts)
    reason, error = details.get("reason", ""), attempt["error"] if attempt else None
    blocks = attempt["blocks"] if attempt else []
    if len(blocks) > MOST_BLOCKS:
        blocks = sorted(blocks, key=lambda one: one["passed"])
    return {
        "result": result,
        "description": details.get("description", ""),
        "reason": "" if reason == error else reason,  # of one attempt, it is the error
        "error": error,
        "tried": f"{passed} of {len(attempts)} attempts passed" if len(attempts) > 1 else "",
        "blocks": [_block(one) for one in blocks[:MOST_BLOCKS]],
        "left_out": len(blocks[MOST_BLOCKS:]),
    }


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """What was stored of a block, its output and assertions as the page prints them; failed assertions first."""
    output = block["output"]
    asked = sorted(block["assertions"], key=lambda one: one["passed"])
    return block | {
        "output": None if output is None else read_text(output),
        "assertions": [shown_assertion(one, one) for one in asked],
    }


def suite_run_page(suite_run: EvalSuiteRun, asked: str, number: int = 1) -> dict[str, Any]:
    """Its cases as rows, failing first, and those worth reading opened: the failing ones, or the one that is asked for.

    Two queries, whatever the number of cases.
    """
    rows = list(suite_run.results.defer("details").order_by("position"))
    rows.sort(key=lambda row: _WORST_FIRST.index(EvalStatus(row.status)))
    bad = [row.pk for row in rows if row.status in (EvalStatus.FAILED, EvalStatus.ERROR)]
    wanted = [row.pk for row in rows if row.case_id == asked] or bad[:MOST_OPEN]
    full = suite_run.results.select_related("run").defer("run__outputs", "run__inputs", "run__resolved")
    by_pk = full.in_bulk(wanted)
    return {
        "rows": Paginator(rows, PAGE_SIZE).get_page(number),
        "opened": [shown_case(by_pk[pk]) for pk in wanted if pk in by_pk],
        "left_closed": 0 if asked else max(0, len(bad) - MOST_OPEN),
    }


def change_row(change: CaseChange, before: EvalSuiteRun, after: EvalSuiteRun) -> dict[str, Any]:
    """One case of two suite runs, with its page, word, tone and icon."""
    word, tone, icon = CHANGES[change.kind]
    newest = after if change.after else before
    url = f"{newest.get_absolute_url()}?{urlencode({'case': change.id})}"
    return {"change": change, "url": url, "word": word, "tone": tone, "icon": icon}


def comparison_sentence(changes: list[CaseChange]) -> tuple[str, str]:
    """What happened between two suite runs, and its tone."""
    kinds = Counter(change.kind for change in changes)
    worse, better = kinds["worse"], kinds["better"]
    if worse:
        also = f" {better:,} that failed pass{'es' if better == 1 else ''} now." if better else ""
        return f"{_cases(worse)} that passed fail{'s' if worse == 1 else ''} now.{also}", "bad"
    if better:
        return (
            f"{_cases(better)} that failed pass{'es' if better == 1 else ''} now, and none got worse.",
            "good",
        )
    return "No case changed its verdict.", "good"


def _cases(count: int) -> str:
    return f"{count:,} case{'' if count == 1 else 's'}"
