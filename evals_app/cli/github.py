"""Workflow commands of GitHub Actions: messages on the lines of the YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evals_app.cases.results import SuiteResult
from evals_app.cli.failures import failures_of
from workflows_app.engine.definition import Fault


def of_faults(path: str, faults: Iterable[Fault]) -> Iterator[str]:
    """One annotation per error in a document."""
    for fault in faults:
        message = f"{fault.path}: {fault.message}".removeprefix(": ")
        yield _error(path, fault.line, "Invalid workflow", message)


def of_suite(suite: SuiteResult) -> Iterator[str]:
    """One error per failed assertion, on its line; if a suite failed for another reason, that."""
    if suite.path is None:
        return
    for case in suite.cases:
        title = f"Eval case {case.id}"
        failures = failures_of([case])
        for one in failures:
            message = f"{one.block.block_id}: {one.reason}"
            yield _error(suite.path, one.line, title, message, is_error=not suite.passed)
        if not failures and not case.passed and case.reason:
            yield _error(suite.path, case.line, title, case.reason, is_error=not suite.passed)
    if not suite.passed and all(case.passed for case in suite.cases):
        yield _error(suite.path, 1, "Eval suite", suite.reason)


def _error(path: str, line: int | None, title: str, message: str, *, is_error: bool = True) -> str:
    """One annotation; a suite that passed only warns of its failed cases."""
    place = f"file={_property(path)},line={line or 1},title={_property(title)}"
    return f"::{'error' if is_error else 'warning'} {place}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
