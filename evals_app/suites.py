"""Suites of eval cases with a database: running them and keeping what they said; `suite_history` reads it.

For pages and API:

    start_suite(workflow, user) -> EvalSuiteRun            # at once; goes on in the background
    run_suite(workflow, user) -> EvalSuiteRun              # here and now, to the end

`EvalSuiteRun.results` are the cases in the order written; `EvalCaseResult.details` is the case as the
JSON report tells it (attempts, blocks, assertions), `EvalCaseResult.run` the run that shows why.
"""

from __future__ import annotations

import queue
import threading
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evals_app.cases import (
    CaseResult,
    Document,
    Evaluation,
    SuiteOptions,
    SuiteResult,
    read_document,
)
from evals_app.cases.results import Attempt
from evals_app.cases.suite import OnCase
from evals_app.ingest import ingest
from evals_app.installation import surroundings_of
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun
from evals_app.suite_history import cases_in
from workflows_app import clock, credentials
from workflows_app.models import Run, RunStatus, Source, Workflow, WorkflowVersion
from workflows_app.services import Refused, audit

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

log = structlog.get_logger("runsight.suites")

SILENT_FOR = timedelta(hours=1)  # after which a suite run is taken to have died, or never to begin
BEAT_SECONDS = 60.0  # how often whoever executes a suite run says that it is alive
MISSED_BEATS = timedelta(minutes=10)  # after which one that has begun is taken to have died


def run_suite(
    workflow: Workflow,
    user: AbstractBaseUser | None = None,
    *,
    version: WorkflowVersion | None = None,
    origin: str = "web",
    options: SuiteOptions | None = None,
) -> EvalSuiteRun:
    """Evaluate every case here and now, and keep what they said."""
    suite_run = begin(workflow, user, version=version, origin=origin)
    execute_suite(suite_run, Evaluation(options or SuiteOptions()))
    return suite_run


def start_suite(
    workflow: Workflow, user: AbstractBaseUser | None = None, *, origin: str = "web"
) -> EvalSuiteRun:
    """Begin to evaluate every case and return at once; the rows tell how far it is."""
    with transaction.atomic():
        suite_run = begin(workflow, user, origin=origin)
        audit(user, "eval.start", workflow.slug, suite_run=str(suite_run.pk))
        transaction.on_commit(lambda: _send_off(suite_run.pk), robust=True)
    return suite_run


def begin(
    workflow: Workflow,
    user: AbstractBaseUser | None = None,
    *,
    version: WorkflowVersion | None = None,
    origin: str = "web",
) -> EvalSuiteRun:
    """Write the row of a suite run that somebody is about to execute."""
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


def _send_off(suite_run_id: UUID) -> None:
    if settings.RUNSIGHT_EXECUTOR == "celery":
        from evals_app.tasks import execute_suite_run

        execute_suite_run.delay(str(suite_run_id))
        return

    def work() -> None:
        try:
            execute_suite_by_id(suite_run_id)
        finally:
            connection.close()

    threading.Thread(target=work, name="eval-suite", daemon=True).start()


def execute_suite_by_id(suite_run_id: UUID | str) -> None:
    """The door of threads and Celery tasks: a message that comes again finds the suite run taken."""
    rows = EvalSuiteRun.objects.select_related("workflow", "version__workflow", "started_by")
    execute_suite(rows.get(pk=suite_run_id))


def execute_suite(
    suite_run: EvalSuiteRun, evaluation: Evaluation | None = None, on_case: OnCase | None = None
) -> SuiteResult | None:
    """Run a suite to its verdict; if the evaluation itself breaks, that is the verdict. None without one.

    Acts once: whoever comes second finds it taken, and what died is closed instead of paid for again.
    """
    if not _take(suite_run):
        return None
    try:
        document = document_of(suite_run.version)
        result = _evaluate(suite_run, document, evaluation or Evaluation(), on_case)
    except KeyboardInterrupt:
        _finish(suite_run, EvalStatus.ERROR, reason="Interrupted before it was finished.")
        raise
    except Exception as error:
        if _is_at_the_end(error):
            log.info("suite interrupted by the end of its process", suite_run=str(suite_run.pk))
            _finish(suite_run, EvalStatus.ERROR, reason="Interrupted before it was finished.")
            return None
        log.exception("suite broke", suite_run=str(suite_run.pk))
        _finish(suite_run, EvalStatus.ERROR, reason=f"The evaluation broke: {type(error).__name__}: {error}")
        return None
    _finish(suite_run, result.status, score=result.score, reason=result.reason, cost_usd=result.cost_usd)
    return result


def _is_at_the_end(error: Exception) -> bool:
    """Whether Python refused new work because the process is about to end."""
    if isinstance(error, ExceptionGroup):
        return any(map(_is_at_the_end, error.exceptions))
    return isinstance(error, RuntimeError) and "after" in str(error) and "shutdown" in str(error)


def _take(suite_run: EvalSuiteRun) -> bool:
    """One conditional UPDATE: of many who come, one begins."""
    suite_run.begun_at, suite_run.alive_at = clock.shared_now(), clock.database_now()
    waiting = EvalSuiteRun.objects.filter(pk=suite_run.pk, begun_at=None, finished_at=None)
    return bool(waiting.update(begun_at=suite_run.begun_at, alive_at=suite_run.alive_at))


def document_of(version: WorkflowVersion) -> Document:
    """A stored version as the evaluation of its cases reads it."""
    return read_document(version.yaml, name=version.workflow.slug)


def _evaluate(
    suite_run: EvalSuiteRun, document: Document, evaluation: Evaluation, on_case: OnCase | None
) -> SuiteResult:
    """Evaluate in a thread that touches no table, and write each case here as it is decided."""
    surroundings = surroundings_of(document.definition)
    decided: queue.SimpleQueue[CaseResult | SuiteResult | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            decided.put(evaluation.run(document, surroundings, decided.put))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            decided.put(error)

    threading.Thread(target=work, name="eval-cases", daemon=True).start()
    places = {case.id: at for at, case in enumerate(cases_in(document.definition))}
    while True:
        try:
            told = decided.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            EvalSuiteRun.objects.filter(pk=suite_run.pk).update(alive_at=Now())
            continue
        if isinstance(told, SuiteResult):
            return told
        if isinstance(told, BaseException):
            raise told
        _keep(suite_run, told, places[told.id])
        if on_case:
            on_case(told)


def _keep(suite_run: EvalSuiteRun, case: CaseResult, position: int) -> None:
    runs = [_keep_run(suite_run, case, number, attempt) for number, attempt in enumerate(case.attempts, 1)]
    told = case.attempts.index(case.told) if case.told else 0
    with transaction.atomic():
        EvalCaseResult.objects.create(
            suite_run=suite_run,
            case_id=case.id,
            position=position,
            status=case.status,
            score=case.score,
            cost_usd=case.cost_usd,
            details=credentials.redactor().redact_json(case.to_dict()),
            run=runs[told] if runs else None,
        )
        suite_run.cases_done += 1
        suite_run.cases_passed += case.passed
        suite_run.alive_at = clock.database_now()
        suite_run.save(update_fields=["cases_done", "cases_passed", "alive_at"])


def _keep_run(suite_run: EvalSuiteRun, case: CaseResult, number: int, attempt: Attempt) -> Run | None:
    """Keep what was executed as a run like any other, which never counts for what is normal."""
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
    return ingest(report, suite_run.started_by, source=Source.EVAL).run


def _finish(suite_run: EvalSuiteRun, status: str, **fields: object) -> None:
    suite_run.status = status
    suite_run.finished_at, suite_run.alive_at = clock.shared_now(), clock.database_now()
    for name, value in fields.items():
        setattr(suite_run, name, value)
    suite_run.save(update_fields=["status", "finished_at", "alive_at", *fields])


def close_abandoned() -> int:
    """End suite runs whose process has gone, and those that none took."""
    silent = Q(alive_at__lt=Now() - SILENT_FOR) | Q(begun_at__isnull=False, alive_at__lt=Now() - MISSED_BEATS)
    dead = EvalSuiteRun.objects.filter(silent, finished_at=None)
    if not dead.exists():  # asked every few seconds: most of the time nothing need be locked
        return 0
    return dead.update(
        status=EvalStatus.ERROR,
        finished_at=Now(),
        reason="The process that evaluated it stopped, or none took it.",
    )
