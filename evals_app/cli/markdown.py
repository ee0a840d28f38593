"""A comment for a pull request: the verdict, what flipped, what failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from evals_app.assertion_words import shorten
from evals_app.cases.compare import CaseChange
from evals_app.cases.results import PASSED, SuiteResult
from evals_app.cli.failures import failures_of
from workflows_app.display import formats

LONGEST = 60_000  # characters; GitHub takes 65,536
MOST_FAILURES = 50
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&@-])")
_SIGNS = {"worse": "🔴 now fails", "better": "🟢 now passes", "removed": "⚪ removed", "added": "🆕 new"}


def markdown(suites: Sequence[SuiteResult], changes: Mapping[str, Sequence[CaseChange]]) -> str:
    """The whole comment, within what a comment may hold."""
    text = "\n".join(_lines(suites, changes)) + "\n"
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST - 40].rpartition("\n")[0] + "\n\n… cut off here.\n"


def _lines(suites: Sequence[SuiteResult], changes: Mapping[str, Sequence[CaseChange]]) -> Iterator[str]:
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
    flips = [change for change in changes if change.kind in _SIGNS]
    if flips:
        yield "\n| case | change | score before | score now |"
        yield "|---|---|---|---|"
    for change in flips:
        before = formats.score(change.before.score if change.before else None)
        after = formats.score(change.after.score if change.after else None)
        yield f"| {_cell(change.id)} | {_SIGNS[change.kind]} | {before} | {after} |"


def _failures(suite: SuiteResult) -> Iterator[str]:
    failures = failures_of(suite.cases)
    if not failures:
        return
    yield f"\n<details{'' if suite.passed else ' open'}><summary>{len(failures)} failed assertions</summary>\n"
    yield "| case | block | line | expected | measured | why |"
    yield "|---|---|---|---|---|---|"
    for one in failures[:MOST_FAILURES]:
        texts = (one.expected(80), one.measured(80), shorten(one.reason, 200))
        places = f"{_cell(one.case.id)} | {_cell(one.block.block_id)} | {one.line or ''}"
        yield f"| {places} | {' | '.join(map(_cell, texts))} |"
    if len(failures) > MOST_FAILURES:
        yield f"\n… and {len(failures) - MOST_FAILURES} more."
    yield "\n</details>"


def _cell(text: str) -> str:
    """A text that stays in its cell and means nothing to Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\-", "-")
