"""JUnit XML with what Jenkins, GitLab, CircleCI, Azure and GitHub's readers have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from evals_app.cases import CaseResult, SuiteResult
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED
from evals_app.cli.wording import expected_text, measured_text, reason_text, shorten

# What XML 1.0 cannot hold, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(suites: Iterable[SuiteResult]) -> str:
    """One testsuite per workflow, one testcase per eval case; a suite that fails by its score has a case of its own."""
    found = list(suites)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuites name="runsight evaluate" {_counts(found)}>')
    for suite in found:
        counts = f'{_counts([suite])} skipped="{suite.count(SKIPPED)}"'
        lines.append(f"  <testsuite name={_attribute(suite.name)} {counts} timestamp={_attribute(moment)}>")
        lines.append("    <properties>")
        for name, value in (
            ("file", suite.path or ""),
            ("score", f"{suite.score:.6f}"),
            ("threshold", f"{suite.threshold:g}"),
        ):
            lines.append(f"      <property name={_attribute(name)} value={_attribute(value)}/>")
        lines.append("    </properties>")
        for case in suite.cases:
            lines.extend(_testcase(suite, case))
        if _needs_own_case(suite):
            lines.append(f'    <testcase name="score" classname={_attribute(suite.name)} time="0.000">')
            lines.append(f'      <failure message={_attribute(suite.reason)} type="threshold"/>')
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _needs_own_case(suite: SuiteResult) -> bool:
    """Whether the suite failed though no case did: a reader that only counts cases must notice."""
    return not suite.passed and all(case.status == PASSED for case in suite.cases)


def _counts(suites: list[SuiteResult]) -> str:
    own = sum(map(_needs_own_case, suites))
    counts = {
        "tests": sum(len(suite.cases) for suite in suites) + own,
        "failures": sum(suite.count(FAILED) for suite in suites) + own,
        "errors": sum(suite.count(ERROR) for suite in suites),
    }
    told = [f'{name}="{count}"' for name, count in counts.items()]
    return " ".join([*told, f'time="{sum(suite.seconds for suite in suites):.3f}"'])


def _testcase(suite: SuiteResult, case: CaseResult) -> Iterator[str]:
    opening = f'    <testcase name={_attribute(case.id)} classname={_attribute(suite.name)} time="{case.seconds:.3f}"'
    if case.passed:
        yield f"{opening}/>"
        return
    yield f"{opening}>"
    if case.status == SKIPPED:
        yield f"      <skipped message={_attribute(case.reason)}/>"
    else:
        tag = "error" if case.status == ERROR else "failure"
        failing = list(case.failing())
        first = next((reason_text(block, check) for block, check in failing), case.reason)
        kind = next((check.result.type for _, check in failing if check), case.status)
        yield f"      <{tag} message={_attribute(shorten(first, 300))} type={_attribute(kind)}>{_text(_story(suite, case))}</{tag}>"
    yield "    </testcase>"


def _story(suite: SuiteResult, case: CaseResult) -> str:
    """Every failed assertion, with its place, what it asked and what it found."""
    lines = [case.reason] if case.reason else []
    for block, check in case.failing():
        line = check.line if check else case.line
        place = f"{suite.path or suite.name}:{line}" if line else suite.path or suite.name
        lines.append(f"{place}: {block.block_id}: {reason_text(block, check)}")
        if check:
            lines.append(f"  expected {expected_text(check, 200)}")
            lines.append(f"  measured {measured_text(block, check, 200)}")
        if block.output is not None:
            lines.append(f"  output   {shorten(block.output, 500)}")
    return "\n".join(lines)


def _attribute(text: str) -> str:
    # A line break in an attribute would be read as a space.
    return quoteattr(_NOT_XML.sub("�", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("�", text))
