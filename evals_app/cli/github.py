"""Workflow commands of GitHub Actions: messages on the lines of the YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evals_app.cases import SuiteResult
from workflows_app.engine.definition import Fault


def of_faults(path: str, faults: Iterable[Fault]) -> Iterator[str]:
    """One error per fault of a document."""
    for fault in faults:
        yield _error(
            path, fault.line, "Invalid workflow", f"{fault.path}: {fault.message}".removeprefix(": ")
        )


def of_suite(suite: SuiteResult) -> Iterator[str]:
    """One error per failed assertion, on its line; of a suite that failed for another reason, that."""
    if suite.path is None:
        return
    told = False
    for case in suite.cases:
        title = f"Eval case {case.id}"
        failing = list(case.failing())
        for block, check in failing:
            reason = check.result.reason if check else f"{block.error}"
            line = check.line if check else case.line
            yield _error(suite.path, line, title, f"{block.block_id}: {reason}", is_error=not suite.passed)
        if not failing and not case.passed and case.reason:
            yield _error(suite.path, case.line, title, case.reason, is_error=not suite.passed)
        told = told or not case.passed
    if not suite.passed and not told:
        yield _error(suite.path, 1, "Eval suite", suite.reason)


def _error(path: str, line: int | None, title: str, message: str, *, is_error: bool = True) -> str:
    """A suite that passed all the same only warns of its failed cases."""
    place = f"file={_property(path)},line={line or 1},title={_property(title)}"
    return f"::{'error' if is_error else 'warning'} {place}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
