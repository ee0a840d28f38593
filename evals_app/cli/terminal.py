"""What a terminal shows: failed assertions first, expected against measured, then every case that did not pass."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from evals_app.assertion_words import shorten
from evals_app.cases.compare import CaseChange
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED, CaseResult, SuiteResult, total_cost
from evals_app.cli.failures import Failure, failures_of
from workflows_app.display import formats

MOST_LISTED = 20  # cases; a longer suite lists only those that did not pass
_SIGNS = {PASSED: "✓", FAILED: "✗", ERROR: "!", SKIPPED: "–"}
_COLOURS = {PASSED: "32", FAILED: "31", ERROR: "33", SKIPPED: "2", "worse": "31", "better": "32"}
_CHANGES = {
    "worse": "passed before, fails now",
    "better": "failed before, passes now",
    "removed": "is gone",
    "added": "is new",
}


class Screen:
    """Where to write, how wide it is, and whether it takes colours."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self.has_colours = (
            self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        self._escape = secrets.token_hex(8)  # nobody's text has it, so only our own colours become escapes
        self.width = max(shutil.get_terminal_size((120, 24)).columns, 60) if self.is_terminal else 160

    def line(self, text: str = "") -> None:
        self.stream.write(formats.for_terminal(text).replace(self._escape, "\x1b[") + "\n")

    def paint(self, text: str, kind: str) -> str:
        if not self.has_colours or kind not in _COLOURS:
            return text
        return f"{self._escape}{_COLOURS[kind]}m{text}{self._escape}0m"


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
        """Count one more finished case."""
        self.done += 1
        self.failed += case.status in (FAILED, ERROR)
        self.cost_usd = total_cost([self.cost_usd, case.cost_usd])
        if self.is_shown and (case.is_executed or self.done % 50 == 0 or self.done == self.total):
            filled = self.WIDTH * self.done // self.total
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            counts = f"{self.done}/{self.total} cases, {self.failed} failed, {formats.cost(self.cost_usd)}"
            self._replace_line(f"{bar} {counts}")

    def clear(self) -> None:
        if self.is_shown:
            self._replace_line("")

    def _replace_line(self, text: str) -> None:
        self.stream.write(f"\r\x1b[K{text}")
        self.stream.flush()


def show(screen: Screen, suite: SuiteResult, changes: Sequence[CaseChange] | None = None) -> None:
    """Print one suite: verdict, failed assertions, flips, cases."""
    screen.line(_headline(screen, suite))
    if suite.reason:
        screen.line(f"  {suite.reason}")
    failures = failures_of(suite.cases)
    for part in (_table(screen, failures), _changes(screen, changes or ()), _cases(screen, suite)):
        lines = list(part)
        if lines:
            screen.line("\n".join(["", *lines]))


def _headline(screen: Screen, suite: SuiteResult) -> str:
    name = f"{suite.name} ({suite.path})" if suite.path else suite.name
    facts = [
        f"score {formats.score(suite.score)} of {suite.threshold:g} needed",
        f"{suite.count(PASSED)} of {len(suite.cases)} cases passed",
        f"{suite.assertion_count} assertions",
        formats.duration(suite.seconds * 1000),
    ]
    if any(case.is_executed for case in suite.cases):
        facts.append(formats.cost(suite.cost_usd) if suite.cost_usd is not None else "cost unknown")
    verdict = {PASSED: "passed", FAILED: "FAILED", ERROR: "COULD NOT RUN"}[suite.status]
    return screen.paint(f"{_SIGNS[suite.status]} {name} {verdict}", suite.status) + f": {', '.join(facts)}"


def _table(screen: Screen, failures: list[Failure]) -> Iterator[str]:
    """Columns as wide as their content, the last two sharing what is left of the line."""
    if not failures:
        return
    titles = ("case", "block", "line", "expected", "measured")
    places = [(one.case.id, one.block.block_id, str(one.line or "")) for one in failures]
    widths = [min(max(map(len, column)), 28) for column in zip(titles[:3], *places, strict=True)]
    rest = max((screen.width - sum(widths) - 10) // 2, 16)

    def row(*texts: str) -> str:
        cells = zip(texts, (*widths, rest, rest), strict=True)
        return "  " + "  ".join(text.ljust(width) for text, width in cells).rstrip()

    yield row(*titles)
    for one, (case_id, block_id, line) in zip(failures, places, strict=True):
        place = (shorten(case_id, widths[0]), shorten(block_id, widths[1]), line.rjust(widths[2]))
        yield screen.paint(row(*place, one.expected(rest), one.measured(rest)), FAILED)
        yield f"    {shorten(one.reason, screen.width - 4)}"
        if one.check is not None and (one.check.result.error or one.check.result.measured is not None):
            yield f"    output: {shorten(one.block.output or '', screen.width - 12)}"


def _changes(screen: Screen, changes: Sequence[CaseChange]) -> Iterator[str]:
    for change in changes:
        if change.kind in _CHANGES:
            before = formats.score(change.before.score if change.before else None)
            after = formats.score(change.after.score if change.after else None)
            flip = screen.paint(f"  {change.id} {_CHANGES[change.kind]}", change.kind)
            yield f"{flip} (score {before} → {after})"


def _cases(screen: Screen, suite: SuiteResult) -> Iterator[str]:
    """The cases that did not pass and, of a short suite on a terminal, the others too."""
    lists_all = screen.is_terminal and len(suite.cases) <= MOST_LISTED
    shown = [case for case in suite.cases if lists_all or not case.passed]
    for case in sorted(shown, key=lambda one: (FAILED, ERROR, SKIPPED, PASSED).index(one.status)):
        verdict = f"  {_SIGNS[case.status]} {case.id}  {formats.score(case.score)}"
        reason = f"  {shorten(case.reason, max(screen.width - len(verdict) - 2, 40))}" if case.reason else ""
        yield screen.paint(verdict, case.status) + reason
