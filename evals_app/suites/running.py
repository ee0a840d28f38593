"""Runs suites of eval cases and stores their results; `history` reads them.

`EvalCaseResult.details` is the case as in the JSON report, `EvalCaseResult.run` the run that shows why.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from celery import current_app
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evals_app.cases.document import Document, cases_in, read_document
from evals_app.cases.environment import CaseEnvironment
from evals_app.cases.results import Attempt, CaseResult, SuiteResult
from evals_app.cases.suite import Evaluation, OnCase
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun
from evals_app.services.ingest import Report
from workflows_app import clock
from workflows_app.engine.definition import SoulDef, WorkflowBlockDef, WorkflowDefinition
from workflows_app.execution.resources import open_provider
from workflows_app.models import Run, RunStatus, Source, Workflow, WorkflowVersion
from workflows_app.security import credentials
from workflows_app.services import Refused, audit
from workflows_app.services.runs import resolve

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

log = structlog.get_logger("runsight.suites")

EXECUTE_SUITE_RUN = "runsight.execute_suite_run"  # by name: the task imports this module
SILENT_FOR = timedelta(hours=1)  # then a suite run that has not begun is closed
BEAT_SECONDS = 60.0  # how often a process that executes a suite run updates `alive_at`
MISSED_BEATS = timedelta(minutes=10)  # then the process that executed it is taken to have died


def start_suite(workflow: Workflow, user: AbstractBaseUser | None = None) -> EvalSuiteRun:
    """Evaluate every case in the background; the rows show the progress."""
    with transaction.atomic():
        suite_run = begin(workflow, user)
        audit(user, "eval.start", workflow.slug, suite_run=str(suite_run.pk))
        transaction.on_commit(lambda: send_off(suite_run.pk), robust=True)
    return suite_run


def begin(
    workflow: Workflow,
    user: AbstractBaseUser | None = None,
    *,
    version: WorkflowVersion | None = None,
    origin: str = "web",
) -> EvalSuiteRun:
    """Create the row of a suite run that is about to be executed."""
    version = version or workflow.current_version
    if version is None:
        raise Refused("no_version", f"{workflow.slug} has no saved version to evaluate.")
    suite = version.definition.eval
    return EvalSuiteRun.objects.create(
        workflow=workflow,
        version=version,
        threshold=suite.threshold if suite else 1.0,
        cases_total=len(suite.cases) if suite else 0,
        origin=origin,
        started_at=clock.shared_now(),
        alive_at=clock.database_now(),
        started_by_id=user.pk if user else None,
    )


def send_off(suite_run_id: UUID) -> None:
    if settings.RUNSIGHT_EXECUTOR == "celery":
        current_app.send_task(EXECUTE_SUITE_RUN, [str(suite_run_id)], ignore_result=True)
        return

    def work() -> None:
        try:
            execute_suite_by_id(suite_run_id)
        finally:
            connection.close()

    threading.Thread(target=work, name="eval-suite", daemon=True).start()


def execute_suite_by_id(suite_run_id: UUID | str) -> None:
    """Execute a suite run in a thread or a Celery task; a repeated message does nothing."""
    rows = EvalSuiteRun.objects.select_related("workflow", "version__workflow", "started_by")
    execute_suite(rows.get(pk=suite_run_id))


def execute_suite(
    suite_run: EvalSuiteRun, evaluation: Evaluation | None = None, on_case: OnCase | None = None
) -> SuiteResult | None:
    """Run a suite to its verdict, or return None if the evaluation breaks or has begun elsewhere.

    A suite run is executed once: if its process dies it is closed, because repeating it would cost money again.
    """
    suite_run.begun_at, suite_run.alive_at = clock.shared_now(), clock.database_now()
    # One conditional UPDATE, so that only one process begins.
    waiting = EvalSuiteRun.objects.filter(pk=suite_run.pk, begun_at=None, finished_at=None)
    if not waiting.update(begun_at=suite_run.begun_at, alive_at=suite_run.alive_at):
        return None
    try:
        document = document_of(suite_run.version)
        result = _evaluate(suite_run, document, evaluation or Evaluation(), on_case)
    except KeyboardInterrupt:
        _finish(suite_run, EvalStatus.ERROR, reason="Interrupted before it was finished.")
        raise
    except Exception as error:
        if _is_shutdown(error):
            log.info("suite interrupted by the end of its process", suite_run=str(suite_run.pk))
            _finish(suite_run, EvalStatus.ERROR, reason="Interrupted before it was finished.")
            return None
        log.exception("suite broke", suite_run=str(suite_run.pk))
        _finish(suite_run, EvalStatus.ERROR, reason=f"The evaluation broke: {type(error).__name__}: {error}")
        return None
    _finish(suite_run, result.status, score=result.score, reason=result.reason, cost_usd=result.cost_usd)
    return result


def _is_shutdown(error: Exception) -> bool:
    """Whether Python refused new work because the process is about to end."""
    if isinstance(error, ExceptionGroup):
        return any(map(_is_shutdown, error.exceptions))
    return isinstance(error, RuntimeError) and "after" in str(error) and "shutdown" in str(error)


def document_of(version: WorkflowVersion) -> Document:
    """A stored version as eval cases read it."""
    return read_document(version.yaml, name=version.workflow.slug)


def _evaluate(
    suite_run: EvalSuiteRun, document: Document, evaluation: Evaluation, on_case: OnCase | None
) -> SuiteResult:
    """Evaluate in a thread that touches no table, and store each case here as soon as it is finished."""
    environment = _environment_for(document.definition)
    finished: queue.SimpleQueue[CaseResult | SuiteResult | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            finished.put(evaluation.run(document, environment, finished.put))
        except BaseException as error:  # noqa: BLE001 - raised again below
            finished.put(error)

    threading.Thread(target=work, name="eval-cases", daemon=True).start()
    positions = {case.id: position for position, case in enumerate(cases_in(document.definition))}
    while True:
        try:
            result = finished.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            EvalSuiteRun.objects.filter(pk=suite_run.pk).update(alive_at=Now())
            continue
        if isinstance(result, SuiteResult):
            return result
        if isinstance(result, BaseException):
            raise result
        _store(suite_run, result, positions[result.id])
        if on_case:
            on_case(result)


def _environment_for(definition: WorkflowDefinition) -> CaseEnvironment:
    """This installation's providers, prices, souls and child workflows, read before the cases start."""
    accesses = credentials.provider_accesses()
    children = dict(_children(definition))
    souls: dict[str, SoulDef] = {}
    for one in (definition, *children.values()):
        library = {ref: SoulDef(**fields) for ref, fields in resolve(one)["souls"].items()}
        souls |= {ref: soul for ref, soul in library.items() if ref not in one.souls}
    return CaseEnvironment(
        make_provider=lambda name: open_provider(name, accesses.get(name)),
        find_workflow=children.get,
        souls=souls,
        price_overrides=credentials.price_overrides(),
    )


def _children(definition: WorkflowDefinition) -> Iterator[tuple[str, WorkflowDefinition]]:
    """Every workflow that may run inside this one."""
    seen: set[str] = set()
    waiting = [definition]
    while waiting:
        one = waiting.pop()
        refs = {b.workflow_ref for b in one.blocks.values() if isinstance(b, WorkflowBlockDef)} - seen
        seen |= refs
        for workflow in Workflow.objects.filter(slug__in=refs).select_related("current_version"):
            if workflow.current_version is not None:
                waiting.append(workflow.current_version.definition)
                yield workflow.slug, workflow.current_version.definition


def _store(suite_run: EvalSuiteRun, case: CaseResult, position: int) -> None:
    runs = {
        id(attempt): _store_run(suite_run, case, number, attempt)
        for number, attempt in enumerate(case.attempts, start=1)
    }
    with transaction.atomic():
        EvalCaseResult.objects.create(
            suite_run=suite_run,
            case_id=case.id,
            position=position,
            status=case.status,
            score=case.score,
            cost_usd=case.cost_usd,
            details=credentials.redactor().redact_json(case.to_dict()),
            run=runs.get(id(case.decisive_attempt)),
        )
        suite_run.cases_done += 1
        suite_run.cases_passed += case.passed
        suite_run.alive_at = clock.database_now()
        suite_run.save(update_fields=["cases_done", "cases_passed", "alive_at"])


def _store_run(suite_run: EvalSuiteRun, case: CaseResult, number: int, attempt: Attempt) -> Run | None:
    """Store what was executed as a run like any other, except that baselines leave it out."""
    if not attempt.nodes:
        return None
    report = {
        "workflow": suite_run.workflow.slug,
        "version": suite_run.version.number,
        "external_id": f"eval:{suite_run.pk}:{case.id}:{number}",
        "status": RunStatus.FAILED if attempt.run_failed else RunStatus.COMPLETED,
        "inputs": attempt.inputs,
        "started_at": clock.now() - timedelta(seconds=attempt.seconds),
        "finished_at": clock.now(),
        "nodes": [
            {
                "node_id": node.node_id,
                "iteration": node.iteration,
                "cost_usd": node.cost_usd,
                "tokens": node.tokens,
                "latency_ms": node.latency_ms,
                "soul_id": node.soul_id,
                "soul_version": node.soul_version,
                **({"error": node.error} if node.error else {"output": node.output}),
            }
            for node in attempt.nodes
        ],
    }
    return Report(report, suite_run.started_by, source=Source.EVAL).store().run


def _finish(suite_run: EvalSuiteRun, status: str, **fields: object) -> None:
    suite_run.status = status
    suite_run.finished_at, suite_run.alive_at = clock.shared_now(), clock.database_now()
    for name, value in fields.items():
        setattr(suite_run, name, value)
    suite_run.save(update_fields=["status", "finished_at", "alive_at", *fields])


def close_abandoned() -> int:
    """Close suite runs whose process has died, and those that no process began."""
    silent = Q(alive_at__lt=Now() - SILENT_FOR) | Q(begun_at__isnull=False, alive_at__lt=Now() - MISSED_BEATS)
    dead = EvalSuiteRun.objects.filter(silent, finished_at=None)
    if not dead.exists():  # called every few seconds: most of the time nothing needs a lock
        return 0
    return dead.update(
        status=EvalStatus.ERROR,
        finished_at=Now(),
        reason="The process that evaluated it stopped, or none began it.",
    )
