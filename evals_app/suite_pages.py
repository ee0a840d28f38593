"""What the pages of eval suites print, read with as few queries for five hundred cases as for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.safestring import SafeString

from evals_app import charts
from evals_app.cases import CaseChange
from evals_app.inspector import Assertion, shown_assertion
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun
from evals_app.outputs import Output, read_text
from evals_app.suite_history import CaseHistory, Mark, SuiteOverview

MOST_OPEN = 4  # cases
CASES_A_PAGE = 40
OUTPUT_BYTES = 1_500
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


@dataclass(frozen=True)
class SuiteRow:
    """One workflow in the list of suites."""

    suite: SuiteOverview
    strip: SafeString

    @classmethod
    def of(cls, suite: SuiteOverview) -> SuiteRow:
        return cls(suite, strip_of(suite.marks, suite.workflow.slug))


@dataclass(frozen=True)
class CaseRow:
    """One case in its workflow's list."""

    case: CaseHistory
    strip: SafeString

    @classmethod
    def of(cls, case: CaseHistory) -> CaseRow:
        return cls(case, strip_of(case.marks, case.case_id))


@dataclass(frozen=True)
class ShownBlock:
    """What was said of one block of a case."""

    block: str
    score: float
    passed: bool
    is_frozen: bool
    output: Output | None
    error: str | None
    assertions: list[Assertion]
    left_out: int  # assertions


@dataclass(frozen=True)
class ShownCase:
    """One case with the attempt that shows why."""

    result: EvalCaseResult
    description: str
    reason: str
    error: str | None
    tried: str  # "2 of 3 attempts passed", where it was tried more than once
    blocks: list[ShownBlock]
    left_out: int  # blocks


def shown_case(result: EvalCaseResult, most_blocks: int, most_assertions: int) -> ShownCase:
    """A stored case, opened: what failed first, and as much of it as there is room for."""
    details: dict[str, Any] = result.details
    attempts = details.get("attempts", [])
    told = next((one for one in attempts if one["status"] != "passed"), attempts[-1] if attempts else None)
    passed = sum(one["status"] == "passed" for one in attempts)
    reason, error = details.get("reason", ""), told["error"] if told else None
    blocks = told["blocks"] if told else []
    if len(blocks) > most_blocks:
        blocks = sorted(blocks, key=lambda one: one["passed"])
    return ShownCase(
        result=result,
        description=details.get("description", ""),
        reason="" if reason == error else reason,  # of one attempt, it is the error
        error=error,
        tried=f"{passed} of {len(attempts)} attempts passed" if len(attempts) > 1 else "",
        blocks=[_block(one, most_assertions) for one in blocks[:most_blocks]],
        left_out=len(blocks[most_blocks:]),
    )


def _block(told: dict[str, Any], most_assertions: int) -> ShownBlock:
    asked = sorted(told["assertions"], key=lambda one: one["passed"])  # stable: the order written within each
    return ShownBlock(
        block=told["block"],
        score=told["score"],
        passed=told["passed"],
        is_frozen=told["frozen"],
        output=None if told["output"] is None else read_text(told["output"], OUTPUT_BYTES),
        error=told["error"],
        assertions=[shown_assertion(one, one) for one in asked[:most_assertions]],
        left_out=len(asked[most_assertions:]),
    )


@dataclass(frozen=True)
class SuiteRunPage:
    """A suite run: its cases as rows, failing first, and those worth reading opened."""

    rows: Page[EvalCaseResult]
    opened: list[ShownCase]
    left_closed: int


def suite_run_page(suite_run: EvalSuiteRun, asked: str, number: int = 1) -> SuiteRunPage:
    """Two queries, whatever the number of cases; `asked` is a case to open instead of the failing ones."""
    rows = list(suite_run.results.defer("details").order_by("position"))
    rows.sort(key=lambda row: _WORST_FIRST.index(EvalStatus(row.status)))
    bad = [row.pk for row in rows if row.status in (EvalStatus.FAILED, EvalStatus.ERROR)]
    wanted = [row.pk for row in rows if row.case_id == asked] or bad[:MOST_OPEN]
    full = suite_run.results.select_related("run").defer("run__outputs", "run__inputs", "run__resolved")
    by_pk = full.in_bulk(wanted)
    most_blocks, most_assertions = (3, 8) if asked else (2, 3)
    opened = [shown_case(by_pk[pk], most_blocks, most_assertions) for pk in wanted if pk in by_pk]
    page = Paginator(rows, CASES_A_PAGE).get_page(number)
    return SuiteRunPage(page, opened, 0 if asked else max(0, len(bad) - MOST_OPEN))


@dataclass(frozen=True)
class ChangeRow:
    """One case of two suite runs."""

    change: CaseChange
    word: str
    tone: str
    icon: str

    @classmethod
    def of(cls, change: CaseChange) -> ChangeRow:
        return cls(change, *CHANGES[change.kind])


def comparison_sentence(changes: list[CaseChange]) -> tuple[str, str]:
    """What happened between two suite runs, and its tone."""
    worse = sum(change.kind == "worse" for change in changes)
    better = sum(change.kind == "better" for change in changes)
    if worse:
        also = f" {better:,} that failed pass{'es' if better == 1 else ''} now." if better else ""
        return (
            f"{worse:,} case{'' if worse == 1 else 's'} that passed fail{'s' if worse == 1 else ''} now.{also}",
            "bad",
        )
    if better:
        return (
            f"{better:,} case{'' if better == 1 else 's'} that failed pass{'es' if better == 1 else ''} now, and none got worse.",
            "good",
        )
    return "No case changed its verdict.", "good"
