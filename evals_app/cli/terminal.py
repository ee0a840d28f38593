"""What a person sees: failed assertions first, expected against measured, then every case that needs a look."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from evals_app.cases import BlockScore, CaseChange, CaseResult, Check, SuiteResult
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED
from evals_app.cli.wording import expected_text, measured_text, reason_text, shorten
from workflows_app import formats

MOST_LISTED = 20  # cases; of a longer suite those that passed are only counted
_SIGNS = {PASSED: "✓", FAILED: "✗", ERROR: "!", SKIPPED: "–"}
_COLOURS = {PASSED: "32", FAILED: "31", ERROR: "33", SKIPPED: "2", "worse": "31", "better": "32"}
_CHANGES = {
    "worse": "passed before, fails now",
    "better": "failed before, passes now",
    "removed": "is gone",
    "added": "is new",
}
Row = tuple[CaseResult, BlockScore, Check | None]


class Screen:
    """Where to write, how wide it is, and whether it takes colours."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self.has_colours = (
            self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        self.width = max(shutil.get_terminal_size((120, 24)).columns, 60) if self.is_terminal else 160

    def line(self, text: str = "") -> None:
        self.stream.write(f"{text}\n")

    def paint(self, text: str, kind: str) -> str:
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self.has_colours and kind in _COLOURS else text


class Progress:
    """A bar on a terminal, nothing anywhere else."""

    WIDTH = 24

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.total = total
        self.is_shown = self.stream.isatty() and total > 0
        self.done = self.failed = 0
        self.cost_usd: float | None = 0.0

    def __call__(self, case: CaseResult) -> None:
        """One more case is decided."""
        self.done += 1
        self.failed += case.status in (FAILED, ERROR)
        self.cost_usd = (
            None if self.cost_usd is None or case.cost_usd is None else self.cost_usd + case.cost_usd
        )
        if self.is_shown and (case.is_executed or self.done % 50 == 0 or self.done == self.total):
            filled = self.WIDTH * self.done // self.total
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            text = (
                f"{bar} {self.done}/{self.total} cases, {self.failed} failed, {formats.cost(self.cost_usd)}"
            )
            self.stream.write(f"\r\x1b[K{text}")
            self.stream.flush()

    def clear(self) -> None:
        if self.is_shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def show(screen: Screen, suite: SuiteResult, changes: Sequence[CaseChange] | None = None) -> None:
    """One suite: verdict, failed assertions, flips, cases."""
    screen.line(_headline(screen, suite))
    if suite.reason:
        screen.line(f"  {suite.reason}")
    rows: list[Row] = [(case, block, check) for case in suite.cases for block, check in case.failing()]
    if rows:
        screen.line()
        for line in _table(screen, rows):
            screen.line(line)
    for line in _changes(screen, changes or ()):
        screen.line(line)
    for line in _cases(screen, suite):
        screen.line(line)


def _headline(screen: Screen, suite: SuiteResult) -> str:
    name = f"{suite.name} ({suite.path})" if suite.path else suite.name
    told = [
        f"score {formats.score(suite.score)} of {suite.threshold:g} needed",
        f"{suite.count(PASSED)} of {len(suite.cases)} cases passed",
        f"{suite.assertion_count} assertions",
        formats.duration(suite.seconds * 1000),
    ]
    if any(case.is_executed for case in suite.cases):
        told.append(formats.cost(suite.cost_usd) if suite.cost_usd is not None else "cost unknown")
    verdict = {PASSED: "passed", FAILED: "FAILED", ERROR: "COULD NOT RUN"}[suite.status]
    return screen.paint(f"{_SIGNS[suite.status]} {name} {verdict}", suite.status) + f": {', '.join(told)}"


def _table(screen: Screen, rows: list[Row]) -> Iterator[str]:
    """Columns as wide as what is in them, the last two sharing what is left of the line."""
    cells = [
        (case.id, block.block_id, str((check.line if check else case.line) or ""), case, block, check)
        for case, block, check in rows
    ]
    widths = [
        min(max([len(title), *(len(str(row[at])) for row in cells)]), 28)
        for at, title in enumerate(("case", "block", "line"))
    ]
    rest = max((screen.width - sum(widths) - 10) // 2, 16)
    titles = ("case", "block", "line", "expected", "measured")
    all_widths = [*widths, rest, rest]
    yield (
        "  " + "  ".join(title.ljust(width) for title, width in zip(titles, all_widths, strict=True)).rstrip()
    )
    for case_id, block_id, line, _, block, check in cells:
        asked = expected_text(check, rest) if check else "an output"
        found = measured_text(block, check, rest)
        texts = (
            shorten(case_id, widths[0]),
            shorten(block_id, widths[1]),
            line.rjust(widths[2]),
            asked,
            found,
        )
        row = "  ".join(text.ljust(width) for text, width in zip(texts, all_widths, strict=True)).rstrip()
        yield screen.paint(f"  {row}", FAILED)
        yield f"    {shorten(reason_text(block, check), screen.width - 4)}"
        if check is not None and (check.result.error or check.result.measured is not None):
            yield f"    output: {shorten(block.output or '', screen.width - 12)}"


def _changes(screen: Screen, changes: Sequence[CaseChange]) -> Iterator[str]:
    told = [change for change in changes if change.kind in _CHANGES]
    if told:
        yield ""
    for change in told:
        before = formats.score(change.before.score if change.before else None)
        after = formats.score(change.after.score if change.after else None)
        yield (
            screen.paint(f"  {change.id} {_CHANGES[change.kind]}", change.kind)
            + f" (score {before} → {after})"
        )


def _cases(screen: Screen, suite: SuiteResult) -> Iterator[str]:
    """The cases that did not pass, and the others too where there are few and somebody looks."""
    lists_all = screen.is_terminal and len(suite.cases) <= MOST_LISTED
    shown = [case for case in suite.cases if lists_all or not case.passed]
    if shown:
        yield ""
    for case in sorted(shown, key=lambda one: (FAILED, ERROR, SKIPPED, PASSED).index(one.status)):
        told = f"  {_SIGNS[case.status]} {case.id}  {formats.score(case.score)}"
        reason = f"  {shorten(case.reason, max(screen.width - len(told) - 2, 40))}" if case.reason else ""
        yield screen.paint(told, case.status) + reason
