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

from evals_app.cases import CaseChange, CaseVerdict, Document, Evaluation, SuiteOptions, SuiteResult, compare
from evals_app.cases.results import ERROR, FAILED, PASSED, SKIPPED, total_cost
from evals_app.cases.suite import CASES_AT_ONCE
from evals_app.cli import COULD_NOT_RUN, CannotRun, github, sources
from evals_app.cli import FAILED as EXIT_FAILED
from evals_app.cli import PASSED as EXIT_PASSED
from evals_app.cli.sources import Target
from evals_app.cli.terminal import Progress, Screen, show
from evals_app.cli.validate import tell_faults
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


def main(arguments: list[str]) -> int:
    """Evaluate what is given on the command line."""
    parser = argparse.ArgumentParser("runsight evaluate", description=DESCRIPTION)
    add_arguments(parser)
    return evaluate(parser.parse_args(arguments))


@dataclass
class Outcome:
    """Everything one call of the command found out."""

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


def evaluate(options: argparse.Namespace) -> int:
    """Read everything first: nothing is executed, and nothing paid, while something is known to be wrong."""
    targets = _targets(options)
    if targets is None:
        return COULD_NOT_RUN
    _check_cases_exist(targets, options.case)
    if len({target.document.name for target in targets}) < len(targets):
        raise CannotRun("two of the files are the same workflow; evaluate one of them.")
    outcome = Outcome()
    evaluation = Evaluation(
        SuiteOptions(
            only=frozenset(options.case),
            fail_fast=options.fail_fast,
            max_cost_usd=options.max_cost,
            cases_at_once=options.jobs,
        )
    )
    progress = Progress(sum(len(_chosen(target.document, options.case)) for target in targets))
    try:
        for target in targets:
            outcome.suites.append(_run(evaluation, target, progress, outcome))
        if options.compare_to:
            _compare(outcome, evaluation, targets, options.compare_to)
    finally:
        progress.clear()
    _report(outcome, options)
    return outcome.exit_code


# What to evaluate


def _targets(options: argparse.Namespace) -> list[Target] | None:
    """The documents to evaluate; None, and every fault told, if one is not valid."""
    files = [given for given in options.targets if sources.is_file(given)]
    needs_database = len(files) < len(options.targets) or options.store
    if needs_database or (options.compare_to and sources.is_suite_run(options.compare_to)):
        sources.set_up_django()
    documents: dict[str, Document] = {}
    is_valid = True
    for given in files:
        try:
            documents[given] = sources.document_from_file(given)
        except InvalidDocument as invalid:
            is_valid = False
            tell_faults(given, invalid.faults, is_github=options.github)
    if not is_valid:
        return None
    return [
        _target(given, documents.get(given), is_kept=options.store)
        for given in dict.fromkeys(options.targets)
    ]


def _target(given: str, document: Document | None, *, is_kept: bool) -> Target:
    if document is None:
        return sources.stored_target(given)
    return sources.kept_target(given, document) if is_kept else Target(document, Path(given))


def _chosen(document: Document, only: Sequence[str]) -> list[str]:
    cases = document.definition.eval.cases if document.definition.eval else ()
    return [case.id for case in cases if not only or case.id in only]


def _check_cases_exist(targets: Sequence[Target], only: Sequence[str]) -> None:
    known = [case_id for target in targets for case_id in _chosen(target.document, ())]
    for case_id in only:
        if case_id not in known:
            from workflows_app.engine.paths import did_you_mean

            hint = did_you_mean(case_id, known) or f"; there are {', '.join(known[:20]) or 'none'}"
            raise CannotRun(f"--case {case_id}: there is no such case{hint}")


# Running


def _run(evaluation: Evaluation, target: Target, progress: Progress, outcome: Outcome) -> SuiteResult:
    if target.version is None:
        from evals_app.cases.surroundings import Surroundings, workflows_beside

        surroundings = Surroundings(find_workflow=workflows_beside(target.path or Path()))
        return evaluation.run(target.document, surroundings, progress)
    from evals_app import suites

    suite_run = suites.begin(target.version.workflow, version=target.version, origin="cli")
    result = suites.execute_suite(suite_run, evaluation, progress)
    if result is None:
        raise CannotRun(suite_run.reason)
    outcome.stored[target.document.name] = str(suite_run.pk)
    return replace(result, name=target.document.name, path=target.document.path)


def _compare(outcome: Outcome, evaluation: Evaluation, targets: Sequence[Target], given: str) -> None:
    options = replace(evaluation.options, fail_fast=False)
    for target, suite in zip(targets, outcome.suites, strict=True):
        if sources.is_suite_run(given):
            before = _stored_verdicts(given)
        elif target.path is None:
            raise CannotRun(
                f"--compare-to {given}: {suite.name} is no file; give the id of a stored suite run."
            )
        else:
            before = _verdicts_at(target.path, given, Evaluation(options, _budget=evaluation.budget))
        outcome.changes[suite.name] = compare(before, _verdicts(suite))


def _verdicts_at(path: Path, ref: str, evaluation: Evaluation) -> list[CaseVerdict]:
    from evals_app.cases.surroundings import Surroundings, workflows_beside

    try:
        document = sources.document_at(path, ref)
    except InvalidDocument as invalid:
        raise CannotRun(f"--compare-to {ref}: {path} was not valid then: {invalid.faults[0]}") from None
    if document is None:
        return []
    return _verdicts(evaluation.run(document, Surroundings(find_workflow=workflows_beside(path))))


def _verdicts(suite: SuiteResult) -> list[CaseVerdict]:
    return [CaseVerdict(case.id, case.passed, case.score) for case in suite.cases if case.status != SKIPPED]


def _stored_verdicts(given: str) -> list[CaseVerdict]:
    from evals_app import suite_history
    from evals_app.models import EvalSuiteRun

    found = EvalSuiteRun.objects.filter(pk=given).first()
    if found is None:
        raise CannotRun(f"--compare-to {given}: there is no such suite run.")
    return suite_history.verdicts_of(found)


# Telling


def _report(outcome: Outcome, options: argparse.Namespace) -> None:
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


def _write(given: str, text: str) -> None:
    path = Path(given)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise CannotRun(f"{given} cannot be written: {error.strerror}.") from None


def _dollars(given: str) -> Decimal:
    try:
        amount = Decimal(given.removeprefix("$"))
    except InvalidOperation:
        raise argparse.ArgumentTypeError(
            f"{given!r} is no amount of dollars; use a number such as 0.50"
        ) from None
    if not math.isfinite(amount) or amount < 0:
        raise argparse.ArgumentTypeError(f"{given!r} is no amount of dollars; use a number such as 0.50")
    return amount


def _jobs(given: str) -> int:
    if not given.isdecimal() or not 1 <= int(given) <= 64:
        raise argparse.ArgumentTypeError(f"{given!r} will not do; use a number from 1 to 64")
    return int(given)
