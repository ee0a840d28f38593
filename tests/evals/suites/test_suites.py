"""Suites with a database: what is kept, and how it reads over time."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from evals_app.cases.compare import compare
from evals_app.cases.results import SuiteResult
from evals_app.cases.suite import Evaluation
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun, Observation
from evals_app.suites import history as suite_history
from evals_app.suites import running as suites
from evals_app.tasks import execute_suite_run
from tests.evals.services.test_concurrency import at_the_same_time
from tests.evals.suites.documents import FIXED, MIXED
from tests.factories import ONE_CODE_BLOCK, make_workflow, run_suite
from tests.timing import wait_until
from workflows_app import clock, executors
from workflows_app.models import Run, Source, Workflow
from workflows_app.services import Refused

pytestmark = pytest.mark.django_db


@pytest.mark.storage
def test_suite_run_keeps_score_verdict_and_every_case() -> None:
    suite_run = run_suite(make_workflow(FIXED, "greeter"))
    suite_run.refresh_from_db()
    assert suite_run.status == EvalStatus.PASSED
    assert suite_run.score == pytest.approx((1.0 + 0.25) / 2)
    assert (suite_run.cases_total, suite_run.cases_done, suite_run.cases_passed) == (2, 2, 1)
    assert suite_run.finished_at is not None
    good, bad = suite_run.results.all()
    assert (good.case_id, good.status, good.run) == ("good", "passed", None)
    assert (bad.case_id, bad.status, bad.score) == ("bad", "failed", 0.25)
    failed = bad.details["attempts"][0]["blocks"][0]["assertions"][1]
    line = FIXED.splitlines()[failed["line"] - 1]
    assert (failed["passed"], line.strip()) == (False, "- {type: contains, value: Ada, weight: 3}")


@pytest.mark.storage
def test_executed_cases_are_eval_runs_that_feed_no_baseline() -> None:
    suite_run = run_suite(make_workflow(MIXED, "greeter"))
    real = suite_run.results.get(case_id="real")
    assert real.run is not None
    assert (real.run.source, real.run.status) == (Source.EVAL, "completed")
    assert real.run.inputs == {"name": "Grace"}
    outputs = dict(real.run.nodes.values_list("node_id", "output"))
    assert outputs == {"greet": "Hello Grace", "shout": "HELLO GRACE!"}
    assert Run.objects.count() == 2
    assert not Observation.objects.exists()


@pytest.mark.storage
def test_strip_shows_each_case_oldest_first_and_cases_that_are_gone_last() -> None:
    workflow = make_workflow(FIXED, "greeter")
    run_suite(workflow)
    make_workflow(
        FIXED.replace("value: Ada, weight: 3", "value: Bob").replace("id: good", "id: fine"), "greeter"
    )
    workflow = Workflow.objects.get()
    run_suite(workflow)
    histories = {one.case_id: one for one in suite_history.case_histories(workflow)}
    assert list(histories) == ["fine", "bad", "good"]
    assert [mark.status for mark in histories["bad"].marks] == ["failed", "passed"]
    assert [histories[name].is_current for name in ("fine", "good")] == [True, False]
    (row,) = suite_history.overview(suite_history.with_suites())
    assert [mark.status for mark in row.marks] == ["passed", "passed"]
    assert row.latest is not None
    assert row.case_count == 2


def test_comparing_puts_flips_first() -> None:
    workflow = make_workflow(FIXED, "greeter")
    before = run_suite(workflow)
    make_workflow(FIXED.replace("value: Ada, weight: 3", "value: Bob"), "greeter")
    after = run_suite(Workflow.objects.get())
    assert suite_history.previous_of(after) == before
    changes = compare(suite_history.verdicts_of(before), suite_history.verdicts_of(after))
    assert [(change.id, change.kind) for change in changes] == [("bad", "better"), ("good", "same")]


@pytest.mark.storage
def test_reading_histories_costs_the_same_for_many_cases(django_assert_num_queries: object) -> None:
    workflow = make_workflow(FIXED, "greeter")
    for _ in range(3):
        run_suite(workflow)
    with django_assert_num_queries(2):  # type: ignore[operator]
        assert len(suite_history.case_histories(workflow)) == 2


@pytest.mark.storage
def test_list_of_suites_reads_the_newest_of_each_and_nothing_older(django_assert_num_queries: object) -> None:
    often, once = make_workflow(slug="often"), make_workflow(slug="once")
    runs = [suites.begin(often) for _ in range(5)] + [suites.begin(once)]
    newest = EvalSuiteRun.objects.for_list().newest(2, [often, once])
    assert list(newest) == [runs[5], runs[4], runs[3]]
    if connection.vendor == "sqlite":
        assert "SCAN evals_app_evalsuiterun" not in newest.explain()
    with django_assert_num_queries(3):  # type: ignore[operator]
        rows = suite_history.overview(suite_history.with_suites(), 2)
    assert [[mark.suite_run for mark in row.marks] for row in rows] == [[runs[5]], runs[3:5]]


@pytest.mark.storage
def test_a_suite_is_listed_for_its_cases_or_its_past_and_for_no_other_word() -> None:
    make_workflow(FIXED, "greeter")
    suites.begin(make_workflow(slug="tried"))
    make_workflow(ONE_CODE_BLOCK.replace("HELLO", "evaluate"), "mentions")
    make_workflow(slug="neither")
    assert [one.slug for one in suite_history.with_suites()] == ["tried", "greeter"]


def test_suite_without_cases_fails() -> None:
    suite_run = run_suite(make_workflow())
    assert suite_run.status == EvalStatus.FAILED
    assert "no assertion was executed" in suite_run.reason


def test_workflow_without_version_is_refused() -> None:
    with pytest.raises(Refused, match="no saved version"):
        run_suite(Workflow.objects.create(slug="empty"))


@pytest.mark.storage
@pytest.mark.parametrize(
    ("has_begun", "silent_for", "is_closed"),
    [
        (True, suites.MISSED_BEATS, True),
        (True, suites.MISSED_BEATS / 2, False),
        (False, suites.SILENT_FOR, True),
        (False, suites.SILENT_FOR / 2, False),  # it waits for a worker
    ],
)
def test_suite_run_that_went_silent_is_closed_by_the_sweep(has_begun, silent_for, is_closed) -> None:
    workflow = make_workflow(FIXED, "greeter")
    moment = clock.now() - silent_for - timedelta(minutes=1)
    silent = EvalSuiteRun.objects.create(
        workflow=workflow,
        version=workflow.current_version,
        begun_at=moment if has_begun else None,
        alive_at=moment,
    )
    executors.announce_unfinished()
    silent.refresh_from_db()
    assert (silent.status == EvalStatus.ERROR, silent.finished_at is not None) == (is_closed, is_closed)


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_suite_run_is_known_to_be_alive_during_a_long_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "BEAT_SECONDS", 0.01)
    suite_run = suites.begin(make_workflow(FIXED, "greeter"))
    heard = []

    class Slow(Evaluation):
        def run(self, *given: Any) -> SuiteResult:
            begun = EvalSuiteRun.objects.get().alive_at
            wait_until(lambda: EvalSuiteRun.objects.get().alive_at > begun, "a sign of life")
            heard.append(True)
            connection.close()
            return super().run(*given)

    assert suites.execute_suite(suite_run, Slow()) is not None
    assert heard == [True]


@pytest.mark.storage
def test_message_delivered_twice_changes_nothing() -> None:
    suite_run = run_suite(make_workflow(FIXED, "greeter"))
    finished_at = EvalSuiteRun.objects.get().finished_at
    suites.execute_suite_by_id(str(suite_run.pk))
    assert EvalSuiteRun.objects.get().finished_at == finished_at
    assert EvalCaseResult.objects.count() == 2


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_message_delivered_to_many_is_executed_once() -> None:
    suite_run = suites.begin(make_workflow(MIXED, "greeter"))
    at_the_same_time([partial(suites.execute_suite_by_id, suite_run.pk)] * 4)
    suite_run.refresh_from_db()
    assert (suite_run.status, suite_run.reason) == (EvalStatus.PASSED, "")
    assert suite_run.cases_total == suite_run.cases_done == EvalCaseResult.objects.count()


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_suite_is_started_though_nobody_can_be_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError("the broker is away")

    monkeypatch.setattr(suites, "send_off", refuse)
    assert suites.start_suite(make_workflow(FIXED, "greeter")) == EvalSuiteRun.objects.get()


@pytest.mark.django_db(transaction=True)
def test_suite_is_sent_to_the_celery_task_of_its_name(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.RUNSIGHT_EXECUTOR = "celery"
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(suites.current_app, "send_task", lambda name, args, **_: sent.append((name, args)))
    suite_run = suites.start_suite(make_workflow(FIXED, "greeter"))
    assert sent == [(execute_suite_run.name, [str(suite_run.pk)])]


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_started_suite_goes_on_in_the_background() -> None:
    suite_run = suites.start_suite(make_workflow(MIXED, "greeter"))
    wait_until(lambda: EvalSuiteRun.objects.get().finished_at, "the end of the suite")
    suite_run.refresh_from_db()
    assert (suite_run.status, suite_run.cases_passed) == (EvalStatus.PASSED, 3)


def test_suite_cut_off_by_the_end_of_its_process_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    workflow = make_workflow(FIXED, "greeter")

    def end(*_: object) -> None:
        refused = RuntimeError("cannot schedule new futures after shutdown")
        raise ExceptionGroup("unhandled errors in a TaskGroup", [refused])

    monkeypatch.setattr(Evaluation, "run", end)
    suite_run = suites.begin(workflow)
    assert suites.execute_suite(suite_run) is None
    assert EvalSuiteRun.objects.get().reason == "Interrupted before it was finished."
    assert "Traceback" not in caplog.text
