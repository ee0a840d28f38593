"""A comment for a pull request: the verdict, what flipped, what failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evals_app.cases import CaseChange, SuiteResult
from evals_app.cases.results import PASSED
from evals_app.cli.wording import expected_text, measured_text, reason_text, shorten
from workflows_app import formats

LONGEST = 60_000  # characters; GitHub takes 65,536
MOST_FAILURES = 50
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&@-])")
_SIGNS = {"worse": "🔴 now fails", "better": "🟢 now passes", "removed": "⚪ removed", "added": "🆕 new"}


def markdown(suites: Iterable[SuiteResult], changes: Mapping[str, Sequence[CaseChange]] | None = None) -> str:
    """The whole comment, within what a comment may hold."""
    found = list(suites)
    text = "\n".join(_lines(found, changes or {})) + "\n"
    return (
        text if len(text) <= LONGEST else text[: LONGEST - 40].rpartition("\n")[0] + "\n\n… cut off here.\n"
    )


def _lines(suites: list[SuiteResult], changes: Mapping[str, Sequence[CaseChange]]) -> Iterator[str]:
    has_passed = all(suite.passed for suite in suites)
    yield f"### {'✅' if has_passed else '❌'} Runsight evals {'passed' if has_passed else 'did not pass'}"
    yield ""
    yield "| workflow | verdict | score | needs | cases | cost | time |"
    yield "|---|---|---|---|---|---|---|"
    for suite in suites:
        cells = (
            _cell(suite.name),
            suite.status,
            formats.score(suite.score),
            f"{suite.threshold:g}",
            f"{suite.count(PASSED)} of {len(suite.cases)} passed",
            formats.cost(suite.cost_usd),
            formats.duration(suite.seconds * 1000),
        )
        yield f"| {' | '.join(cells)} |"
    for suite in suites:
        if suite.reason:
            yield f"\n**{_cell(suite.name)}**: {_cell(suite.reason)}"
        yield from _flips(changes.get(suite.name, ()))
        yield from _failures(suite)


def _flips(changes: Sequence[CaseChange]) -> Iterator[str]:
    told = [change for change in changes if change.kind in _SIGNS]
    if told:
        yield "\n| case | change | score before | score now |"
        yield "|---|---|---|---|"
    for change in told:
        before = formats.score(change.before.score if change.before else None)
        after = formats.score(change.after.score if change.after else None)
        yield f"| {_cell(change.id)} | {_SIGNS[change.kind]} | {before} | {after} |"


def _failures(suite: SuiteResult) -> Iterator[str]:
    rows = [(case, block, check) for case in suite.cases for block, check in case.failing()]
    if not rows:
        return
    yield f"\n<details{'' if suite.passed else ' open'}><summary>{len(rows)} failed assertions</summary>\n"
    yield "| case | block | line | expected | measured | why |"
    yield "|---|---|---|---|---|---|"
    for case, block, check in rows[:MOST_FAILURES]:
        line = check.line if check else case.line
        asked = _cell(expected_text(check, 80)) if check else "an output"
        found = _cell(measured_text(block, check, 80))
        why = _cell(shorten(reason_text(block, check), 200))
        yield f"| {_cell(case.id)} | {_cell(block.block_id)} | {line or ''} | {asked} | {found} | {why} |"
    if len(rows) > MOST_FAILURES:
        yield f"\n… and {len(rows) - MOST_FAILURES} more."
    yield "\n</details>"


def _cell(text: str) -> str:
    """A text that stays in its cell and means nothing to Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\-", "-")
