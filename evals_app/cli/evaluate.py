"""`runsight evaluate <file|slug>…`: run eval cases, show what failed, and leave reports for CI."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from evals_app.cases.compare import CaseChange, CaseVerdict, compare
from evals_app.cases.document import Document, cases_in, read_document
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED, SuiteResult, total_cost
from evals_app.cases.suite import CASES_AT_ONCE, Evaluation
from evals_app.cli import COULD_NOT_RUN, CannotRun, github, sources
from evals_app.cli import FAILED as EXIT_FAILED
from evals_app.cli import PASSED as EXIT_PASSED
from evals_app.cli.sources import Target
from evals_app.cli.terminal import Progress, Screen, show
from evals_app.cli.validate import print_faults
from workflows_app.engine.definition import InvalidDocument

DESCRIPTION = "Run the eval cases of workflows. Exit code 0: passed, 1: failed, 2: could not run."
FORMAT = "runsight-evaluate/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="FILE|SLUG", help="a YAML file, or a workflow's slug")
    parser.add_argument(
        "--case", action="append", default=[], metavar="ID", help="only this case; repeatable"
    )
    parser.add_argument("--junit", metavar="F", help="write JUnit XML to this file")
    parser.add_argument("--json", metavar="F", help="write everything as JSON to this file")
    parser.add_argument("--markdown", metavar="F", help="write a pull-request comment to this file")
    parser.add_argument("--github", action="store_true", help="write annotations for GitHub Actions")
    parser.add_argument(
        "--compare-to", metavar="REF|RUN", help="list flips since a git ref or a stored suite run"
    )
    parser.add_argument(
        "--max-cost", type=_dollars, metavar="USD", help="start no call that might exceed this"
    )
    parser.add_argument("--fail-fast", action="store_true", help="start no case after one has failed")
    parser.add_argument(
        "--jobs", type=_jobs, default=CASES_AT_ONCE, metavar="N", help="cases executed at once"
    )
    parser.add_argument("--store", action="store_true", help="keep the results of files in the database, too")


@dataclass
class Outcome:
    """The results of one call of the command."""

    suites: list[SuiteResult] = field(default_factory=list)
    changes: dict[str, list[CaseChange]] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)  # workflow to id of its suite run

    @property
    def exit_code(self) -> int:
        statuses = {suite.status for suite in self.suites}
        return EXIT_FAILED if FAILED in statuses else COULD_NOT_RUN if ERROR in statuses else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        """The JSON report; docs/schemas/evaluate.json describes it."""
        return {
            "format": FORMAT,
            "passed": self.exit_code == EXIT_PASSED,
            "exit_code": self.exit_code,
            "cost_usd": total_cost(suite.cost_usd for suite in self.suites),
            "suites": [
                {
                    **suite.to_dict(),
                    "stored_as": self.stored.get(suite.name),
                    "changes": [change.to_dict() for change in self.changes[suite.name]]
                    if suite.name in self.changes
                    else None,
                }
                for suite in self.suites
            ],
        }


def main(options: argparse.Namespace) -> int:
    """Evaluate everything, after everything was read: what is known to be wrong must not cost money first."""
    targets = _targets(options)
    if targets is None:
        return COULD_NOT_RUN
    known = [case.id for target in targets for case in cases_in(target.document.definition)]
    _check_cases_exist(options.case, known)
    if len({target.document.name for target in targets}) < len(targets):
        raise CannotRun("two of the files are the same workflow; evaluate one of them.")
    outcome = Outcome()
    evaluation = Evaluation(
        only=frozenset(options.case),
        fail_fast=options.fail_fast,
        max_cost_usd=options.max_cost,
        cases_at_once=options.jobs,
    )
    progress = Progress(sum(not options.case or case_id in options.case for case_id in known))
    try:
        for target in targets:
            outcome.suites.append(_run(evaluation, target, progress, outcome))
        if options.compare_to:
            _compare(outcome, evaluation, targets, options.compare_to)
    finally:
        progress.clear()
    report(outcome, options)
    return outcome.exit_code


def _targets(options: argparse.Namespace) -> list[Target] | None:
    """The documents to evaluate; None, with every error printed, if one is not valid."""
    files = [name for name in options.targets if sources.is_file(name)]
    needs_database = len(files) < len(options.targets) or options.store
    if needs_database or (options.compare_to and sources.is_suite_run(options.compare_to)):
        sources.set_up_django()
    documents: dict[str, Document] = {}
    for name in files:
        try:
            documents[name] = read_document(sources.read_file(name), name=Path(name).stem, path=name)
        except InvalidDocument as invalid:
            print_faults(name, invalid.faults, is_github=options.github)
    if len(documents) < len(set(files)):
        return None
    return [
        Target(documents[name], sources.saved_version(Path(name)) if options.store else None)
        if name in documents
        else sources.stored_target(name)
        for name in dict.fromkeys(options.targets)
    ]


def _check_cases_exist(only: Sequence[str], known: Sequence[str]) -> None:
    for case_id in only:
        if case_id not in known:
            from workflows_app.engine.values.paths import did_you_mean

            hint = did_you_mean(case_id, known) or f"; there are {', '.join(known[:20]) or 'none'}"
            raise CannotRun(f"--case {case_id}: there is no such case{hint}")


def _run(evaluation: Evaluation, target: Target, progress: Progress, outcome: Outcome) -> SuiteResult:
    if target.version is None:
        path = Path(target.document.path or "")
        return evaluation.run(target.document, sources.environment_beside(path), progress)
    from evals_app.suites import running as suites

    suite_run = suites.begin(target.version.workflow, version=target.version, origin="cli")
    result = suites.execute_suite(suite_run, evaluation, progress)
    if result is None:
        raise CannotRun(suite_run.reason)
    outcome.stored[target.document.name] = str(suite_run.pk)
    return replace(result, name=target.document.name, path=target.document.path)


def _compare(outcome: Outcome, evaluation: Evaluation, targets: Sequence[Target], reference: str) -> None:
    for target, suite in zip(targets, outcome.suites, strict=True):
        if sources.is_suite_run(reference):
            before = _stored_verdicts(reference)
        elif target.document.path is None:
            raise CannotRun(
                f"--compare-to {reference}: {suite.name} is no file; give the id of a stored suite run."
            )
        else:
            again = replace(evaluation, fail_fast=False, has_stopped=False)
            before = _verdicts_at(Path(target.document.path), reference, again)
        outcome.changes[suite.name] = compare(before, _verdicts(suite))


def _verdicts_at(path: Path, ref: str, evaluation: Evaluation) -> list[CaseVerdict]:
    try:
        document = sources.document_at(path, ref)
    except InvalidDocument as invalid:
        raise CannotRun(f"--compare-to {ref}: {path} was not valid then: {invalid.faults[0]}") from None
    if document is None:
        return []
    return _verdicts(evaluation.run(document, sources.environment_beside(path)))


def _verdicts(suite: SuiteResult) -> list[CaseVerdict]:
    return [CaseVerdict(case.id, case.passed, case.score) for case in suite.cases if case.status != SKIPPED]


def _stored_verdicts(suite_run_id: str) -> list[CaseVerdict]:
    from evals_app.models import EvalSuiteRun
    from evals_app.suites.history import verdicts_of

    found = EvalSuiteRun.objects.filter(pk=suite_run_id).first()
    if found is None:
        raise CannotRun(f"--compare-to {suite_run_id}: there is no such suite run.")
    return verdicts_of(found)


def report(outcome: Outcome, options: argparse.Namespace) -> None:
    screen = Screen()
    order = (FAILED, ERROR, PASSED)
    for suite in sorted(outcome.suites, key=lambda one: order.index(one.status)):
        show(screen, suite, outcome.changes.get(suite.name))
    if options.github:
        for suite in outcome.suites:
            for line in github.of_suite(suite):
                screen.line(line)
    if options.junit:
        from evals_app.cli.junit import junit_xml

        _write(options.junit, junit_xml(outcome.suites))
    if options.json:
        _write(options.json, json.dumps(outcome.to_dict(), ensure_ascii=False, indent=1, default=str) + "\n")
    if options.markdown:
        from evals_app.cli.markdown import markdown

        _write(options.markdown, markdown(outcome.suites, outcome.changes))


def _write(name: str, text: str) -> None:
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise CannotRun(f"{name} cannot be written: {error.strerror}.") from None


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("nan")
    if not math.isfinite(amount) or amount < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of dollars; use a number such as 0.50")
    return amount


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is not possible; use a number from 1 to 64")
    return int(text)
