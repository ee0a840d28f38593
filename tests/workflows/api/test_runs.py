"""Runs over the API: start, wait, read, list, cancel, repeat."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.callers import authorization, caller, queries_of, user_in
from tests.factories import make_workflow
from tests.timing import wait_until
from workflows_app.api.workflows import EXAMPLE_YAML
from workflows_app.engine.values.inputs import check_inputs
from workflows_app.models import IdempotencyKey, Run, Workflow

pytestmark = pytest.mark.django_db
START = "/api/workflows/analysis/runs/"


@pytest.fixture
def workflow(db: None) -> Workflow:
    return make_workflow(EXAMPLE_YAML, "analysis")


@pytest.fixture
def operator(workflow: Workflow) -> Any:
    return caller("operator")


def make_runs(workflow: Workflow, count: int, **fields: Any) -> list[Run]:
    version = workflow.current_version
    first = Run.objects.count() + 1
    runs = [
        Run(workflow=workflow, version=version, number=first + index, outputs={"a": "x" * 50}, **fields)
        for index in range(count)
    ]
    return Run.objects.bulk_create(runs)


def test_starting_writes_a_pending_run(operator: Any) -> None:
    response = operator.post(START, {"inputs": {"topic": "rain"}, "environment": "simulation"})
    assert response.status_code == 201
    run = Run.objects.get()
    assert response.headers["Location"] == f"/api/runs/{run.pk}/"
    body = response.json()
    shown = ("number", "workflow", "version", "status", "source", "environment", "inputs", "parent_run")
    assert [body[name] for name in shown] == [
        1,
        "analysis",
        1,
        "pending",
        "api",
        "simulation",
        {"topic": "rain"},
        None,
    ]
    assert body["tokens"] == {"prompt": 0, "completion": 0, "total": 0}
    assert body["eval_counts"] == {"passed": 0, "failed": 0, "error": 0}


BAD_STARTS = [
    ({"inputs": {}}, "inputs.topic"),
    ({"inputs": {"topic": 3}}, "inputs.topic"),
    ({"inputs": {"topic": "x", "tpic": "y"}}, "inputs.tpic"),
    ({"inputs": []}, "inputs"),
    ({"inputs": {"topic": "x"}, "version": 7}, "version"),
    ({"inputs": {"topic": "x"}, "version": True}, "version"),
    ({"inputs": {"topic": "x"}, "environment": "staging"}, "environment"),
    ({"input": {"topic": "x"}}, "input"),
]


@pytest.mark.parametrize(("body", "path"), BAD_STARTS)
def test_a_bad_start_is_refused_with_its_place(body: dict[str, Any], path: str, operator: Any) -> None:
    response = operator.post(START, body)
    assert response.status_code == 400
    assert path in [detail["path"] for detail in response.json()["error"]["details"]]
    assert not Run.objects.exists()


def test_a_disabled_workflow_is_a_conflict(operator: Any) -> None:
    Workflow.objects.update(enabled=False)
    response = operator.post(START, {"inputs": {"topic": "x"}})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "disabled")


@pytest.mark.storage
def test_a_repeated_key_starts_once(operator: Any) -> None:
    headers = {"Idempotency-Key": "k1"}
    body = {"inputs": {"topic": "rain"}}
    first = operator.post(START, body, headers=headers)
    again = operator.post(START, body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    other = operator.post(START, {"inputs": {"topic": "sun"}}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert caller("admin").post(START, body, headers=headers).json()["id"] != first.json()["id"]
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert operator.post(START, body, headers=headers).json()["id"] != first.json()["id"]


@pytest.mark.storage
def test_a_refused_start_leaves_its_key_free(operator: Any) -> None:
    headers = {"Idempotency-Key": "k1"}
    assert operator.post(START, {}, headers=headers).status_code == 400
    assert operator.post(START, {"inputs": {"topic": "x"}}, headers=headers).status_code == 201
    assert operator.post(START, {}, headers={"Idempotency-Key": "x" * 201}).status_code == 400


@pytest.mark.django_db(transaction=True)
@pytest.mark.storage
def test_the_same_key_at_the_same_moment_starts_once() -> None:
    make_workflow(EXAMPLE_YAML, "analysis")
    clients = [caller("operator") for _ in range(6)]

    def start(client: Any) -> str:
        try:
            response = client.post(START, {"inputs": {"topic": "x"}}, headers={"Idempotency-Key": "k"})
            assert response.status_code == 201, response.content
            return str(response.json()["id"])
        finally:
            connection.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        assert len(set(pool.map(start, clients))) == 1
    assert Run.objects.count() == 1


def test_waiting_answers_with_the_finished_run_and_its_evaluation(live_site: str) -> None:
    make_workflow(EXAMPLE_YAML, "analysis")
    key = authorization("operator")
    response = httpx2.post(
        f"{live_site}{START}?wait=30",
        json={"inputs": {"topic": "rain"}},
        headers={"Authorization": key},
        timeout=40,
    )
    body = response.json()
    assert (response.status_code, body["status"], body["eval_passed"]) == (201, "completed", True)
    assert body["outputs"]["analyze"]
    assert Run.objects.get().observed_at is not None


def test_a_run_that_ends_in_this_process_wakes_its_caller(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workflow(EXAMPLE_YAML, "analysis")
    monkeypatch.setattr("workflows_app.execution.waiting.POLL_SECONDS", 60)
    began = time.monotonic()
    response = httpx2.post(
        f"{live_site}{START}?wait=30",
        json={"inputs": {"topic": "rain"}},
        headers={"Authorization": authorization("operator")},
        timeout=40,
    )
    assert response.json()["status"] == "completed" and time.monotonic() - began < 25


@pytest.mark.storage
def test_waiting_holds_neither_threads_nor_connections(
    live_site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workflow(EXAMPLE_YAML, "analysis")
    key = authorization("operator")
    monkeypatch.setattr(
        "workflows_app.services.leases.claim", lambda run_id: None
    )  # nobody takes a run: every caller waits
    waiters = 20

    def wait() -> float:
        started = time.monotonic()
        with httpx2.Client(timeout=40) as client:
            response = client.post(
                f"{live_site}{START}?wait=3",
                json={"inputs": {"topic": "rain"}},
                headers={"Authorization": key},
            )
        assert (response.status_code, response.json()["status"]) == (201, "pending")
        return time.monotonic() - started

    with ThreadPoolExecutor(waiters) as pool:
        before = threading.active_count()
        waits = [pool.submit(wait) for _ in range(waiters)]
        wait_until(lambda: Run.objects.count() == waiters, "every request's run")
        # One that held a thread would hold it as long as it waits.
        wait_until(
            lambda: threading.active_count() - before - waiters < waiters / 2, "requests without threads", 2
        )
        assert all(future.result() >= 3 for future in waits)


@pytest.mark.parametrize("wait", ["-1", "soon", "nan", "inf"])
def test_a_wait_that_is_no_time_is_refused(wait: str, operator: Any) -> None:
    assert operator.post(f"{START}?wait={wait}", {"inputs": {"topic": "x"}}).status_code == 400
    assert not Run.objects.exists()


@pytest.mark.storage
def test_cancelling_and_repeating(operator: Any) -> None:
    run = operator.post(START, {"inputs": {"topic": "rain"}}).json()
    assert operator.post(f"/api/runs/{run['id']}/cancel/").json()["status"] == "cancelled"
    assert operator.post(f"/api/runs/{run['id']}/cancel/").status_code == 409
    again = operator.post(f"/api/runs/{run['id']}/rerun/")
    assert again.status_code == 201
    assert (again.json()["rerun_of"], again.json()["inputs"]) == (run["id"], {"topic": "rain"})


FILTERS = [
    ("status=completed", 3),
    ("status=completed&status=failed", 5),
    ("source=ingest", 2),
    ("workflow=analysis", 5),
    ("workflow=nothing", 0),
    ("version=1", 5),
    ("eval_passed=false", 2),
    ("eval_passed=True", 3),
    ("eval_passed=", 5),
    ("created_after=2020-01-01T00:00:00Z", 5),
    ("created_before=2020-01-01T00:00:00Z", 0),
    ("environment=simulation", 0),
]


@pytest.mark.parametrize(("query", "count"), FILTERS)
@pytest.mark.storage
def test_runs_are_filtered(query: str, count: int, operator: Any, workflow: Workflow) -> None:
    make_runs(workflow, 3, status="completed", eval_passed=True)
    make_runs(workflow, 2, status="failed", source="ingest", eval_passed=False)
    assert len(operator.get(f"/api/runs/?{query}").json()["results"]) == count


@pytest.mark.parametrize(
    "query",
    [
        "status=done",
        "limit=0",
        "limit=x",
        "cursor=x",
        "ordering=cost",
        "fields=nothing",
        "version=x",
        "eval_passed=null",
        "eval_passed=yes",
    ],
)
def test_a_query_that_means_nothing_is_refused(query: str, operator: Any) -> None:
    assert operator.get(f"/api/runs/?{query}").status_code == 400


@pytest.mark.storage
def test_pages_follow_each_other_while_runs_are_added(operator: Any, workflow: Workflow) -> None:
    make_runs(workflow, 25)
    page = operator.get("/api/runs/?limit=10&fields=number").json()
    numbers = [row["number"] for row in page["results"]]
    make_runs(workflow, 5)
    while page["next"]:
        page = operator.get(page["next"]).json()
        numbers += [row["number"] for row in page["results"]]
    assert sorted(numbers) == list(range(1, 26))
    assert len(operator.get("/api/runs/?limit=1000").json()["results"]) == 30


def test_fields_leave_out_columns_too(operator: Any, workflow: Workflow) -> None:
    make_runs(workflow, 2)
    with CaptureQueriesContext(connection) as captured:
        rows = operator.get("/api/runs/?fields=-inputs,-outputs").json()["results"]
    assert "outputs" not in rows[0]
    assert "number" in rows[0]
    assert '"outputs"' not in " ".join(query["sql"] for query in captured)
    assert operator.get("/api/runs/?fields=id,status").json()["results"][0].keys() == {"id", "status"}


@pytest.mark.parametrize("path", ["/api/runs/", START])
def test_lists_cost_the_same_for_any_number_of_runs(path: str, operator: Any, workflow: Workflow) -> None:
    make_runs(workflow, 2)
    before = queries_of(operator, path)
    make_runs(workflow, 40)
    assert queries_of(operator, path) == before


@pytest.mark.storage
def test_history_goes_on_after_a_number(executor: Any) -> None:
    from tests.factories import finish
    from workflows_app import services

    run = finish(services.start_run(make_workflow(EXAMPLE_YAML, "analysis"), {"topic": "rain"}))
    viewer = caller("viewer")
    whole = viewer.get(f"/api/runs/{run.pk}/events/").json()["results"]
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    assert whole[0].keys() == {"seq", "event", "run_id", "workflow", "at", "data"}
    page = viewer.get(f"/api/runs/{run.pk}/events/?after=1&limit=2").json()
    assert [event["seq"] for event in page["results"]] == [2, 3]
    rest = viewer.get(page["next"]).json()
    assert rest["results"] == whole[3:5]
    node = viewer.get(f"/api/runs/{run.pk}/nodes/").json()["results"][0]
    shown = {"run", "node_id", "block_type", "iteration", "attempt", "status", "output", "cost_usd", "tokens",
            "latency_ms", "soul_id", "soul_version", "prompt_hash", "exit_handle", "child_run", "error",
            "eval_score", "eval_passed", "eval_results", "delta"}  # fmt: skip
    assert shown <= node.keys()
    assert "output" not in viewer.get(f"/api/runs/{run.pk}/nodes/?fields=-output").json()["results"][0]


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_starting_a_run_while_its_workflow_is_deleted_breaks_neither() -> None:
    operator, admin = caller("operator"), Client()
    admin.force_login(user_in("admin"), backend="django.contrib.auth.backends.ModelBackend")

    def start(barrier: threading.Barrier) -> int:
        barrier.wait()
        try:
            return int(operator.post(START, {"inputs": {"topic": "rain"}}).status_code)
        finally:
            connection.close()

    def delete(barrier: threading.Barrier, pk: int) -> int:
        barrier.wait()
        try:
            path = f"/admin/workflows_app/workflow/{pk}/delete/"
            return int(admin.post(path, {"post": "yes"}).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        for _ in range(12):
            workflow = make_workflow(EXAMPLE_YAML, "analysis")
            barrier = threading.Barrier(2)
            started, deleted = threads.submit(start, barrier), threads.submit(delete, barrier, workflow.pk)
            # The deleted workflow cannot be started, or the started one cannot be deleted.
            outcome = (started.result(), deleted.result())
            assert outcome in {(404, 302), (409, 302), (201, 403)}
            Run.objects.all().delete()
            Workflow.objects.all().delete()


def test_workflow_deleted_just_before_its_run_is_numbered_is_a_conflict(
    operator: Any, workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleting(*args: Any) -> Any:
        Workflow.objects.all().delete()
        return check_inputs(*args)

    monkeypatch.setattr("workflows_app.services.runs.check_inputs", deleting)
    response = operator.post(START, {"inputs": {"topic": "rain"}})
    assert (response.status_code, response.json()["error"]["message"]) == (409, "analysis was deleted.")


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_workflow_locked_by_a_frozen_process_is_answered_with_503(workflow: Workflow) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no locks of rows")
    operator = caller("operator")
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Workflow.objects.select_for_update().get(pk=workflow.pk)

        def start() -> Any:
            try:
                return operator.post(START, {"inputs": {"topic": "rain"}})
            finally:
                connection.close()

        response = threads.submit(start).result(30)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "busy")
    assert int(response.headers["Retry-After"]) > 0
    assert not Run.objects.exists()


@pytest.mark.storage
def test_transaction_that_nobody_goes_on_with_is_ended_by_postgres(workflow: Workflow) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("one process at a time writes to SQLite")
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("8s",)


def test_database_that_does_not_answer_is_a_503(operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*args: Any, **fields: Any) -> Any:
        raise OperationalError("database is locked")

    monkeypatch.setattr("workflows_app.services.start_run", locked)
    response = operator.post(START, {"inputs": {"topic": "rain"}})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
