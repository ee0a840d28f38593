"""JUnit XML with what Jenkins, GitLab, CircleCI, Azure and GitHub's readers have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree  # nosec B405 - it writes XML and reads none

from evals_app.assertion_words import shorten
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED, CaseResult, SuiteResult
from evals_app.cli.failures import failures_of

# What XML 1.0 cannot hold, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(suites: Sequence[SuiteResult]) -> str:
    """One testsuite per workflow, one testcase per eval case; a suite that fails by its score has a case of its own."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    root = ElementTree.Element("testsuites", _clean({"name": "runsight evaluate", **_counts(suites)}))
    for suite in suites:
        attributes = {"name": suite.name, **_counts([suite]), "skipped": str(suite.count(SKIPPED))}
        element = _add(root, "testsuite", **attributes, timestamp=moment)
        properties = _add(element, "properties")
        _add(properties, "property", name="file", value=suite.path or "")
        _add(properties, "property", name="score", value=f"{suite.score:.6f}")
        _add(properties, "property", name="threshold", value=f"{suite.threshold:g}")
        for case in suite.cases:
            _add_case(element, suite, case)
        if _needs_own_case(suite):
            own = _add(element, "testcase", name="score", classname=suite.name, time="0.000")
            _add(own, "failure", message=suite.reason, type="threshold")
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _needs_own_case(suite: SuiteResult) -> bool:
    """Whether the suite failed though no case did: a reader that only counts cases must notice."""
    return not suite.passed and all(case.status == PASSED for case in suite.cases)


def _counts(suites: Sequence[SuiteResult]) -> dict[str, str]:
    own = sum(map(_needs_own_case, suites))
    return {
        "tests": str(sum(len(suite.cases) for suite in suites) + own),
        "failures": str(sum(suite.count(FAILED) for suite in suites) + own),
        "errors": str(sum(suite.count(ERROR) for suite in suites)),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }


def _add_case(parent: ElementTree.Element, suite: SuiteResult, case: CaseResult) -> None:
    element = _add(parent, "testcase", name=case.id, classname=suite.name, time=f"{case.seconds:.3f}")
    if case.status == SKIPPED:
        _add(element, "skipped", message=case.reason)
    elif not case.passed:
        failures = failures_of([case])
        reason = failures[0].reason if failures else case.reason
        kind = next((one.check.result.type for one in failures if one.check), case.status)
        tag = "error" if case.status == ERROR else "failure"
        details = _add(element, tag, message=shorten(reason, 300), type=kind)
        details.text = _NOT_XML.sub("�", _details(suite, case))


def _details(suite: SuiteResult, case: CaseResult) -> str:
    """Every failed assertion, with its place, what it expected and what it found."""
    lines = [case.reason] if case.reason else []
    for one in failures_of([case]):
        place = f"{suite.path or suite.name}:{one.line}" if one.line else suite.path or suite.name
        lines.append(f"{place}: {one.block.block_id}: {one.reason}")
        if one.check:
            lines.append(f"  expected {one.expected(200)}")
            lines.append(f"  measured {one.measured(200)}")
        if one.block.output is not None:
            lines.append(f"  output   {shorten(one.block.output, 500)}")
    return "\n".join(lines)


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, _clean(attributes))


def _clean(attributes: dict[str, str]) -> dict[str, str]:
    return {name: _NOT_XML.sub("�", text) for name, text in attributes.items()}
