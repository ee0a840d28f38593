"""Lists in the admin cost the same however many rows there are, and find what people type."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evals_app.models import BlockStatistics, Observation, Regression
from tests.callers import queries_of
from tests.factories import ONE_CODE_BLOCK, make_workflow
from tests.html import squeezed
from workflows_app import services
from workflows_app.admin import facts
from workflows_app.models import ApiToken, AuditEntry, Run, RunEvent, RunNode, Soul, Workflow

pytestmark = pytest.mark.django_db

LISTS = [
    "workflows_app/workflow", "workflows_app/soul", "workflows_app/provider", "workflows_app/priceoverride",
    "workflows_app/run", "workflows_app/runnode", "workflows_app/runevent", "workflows_app/auditentry",
    "workflows_app/apitoken", "evals_app/regression", "evals_app/blockstatistics", "evals_app/pinnedbaseline",
    "evals_app/observation", "auth/user", "auth/group",
]  # fmt: skip


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(
        User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def add_rows(tag: str) -> Run:
    """One more row of everything, each with its own workflow and user."""
    user = User.objects.create_user(f"user-{tag}")
    user.groups.add(*access_groups())
    workflow = make_workflow(ONE_CODE_BLOCK, f"flow-{tag}", author=user)
    run = services.start_run(workflow, user=user)
    RunNode.objects.create(run=run, node_id="shout", block_type="code", output="x" * 100)
    RunEvent.objects.create(run=run, seq=1, event="run_started")
    services.make_token(user, f"token-{tag}")
    services.save_soul(Soul(slug=f"soul-{tag}"), author=user)
    services.audit(user, "test.row", tag)
    BlockStatistics.objects.create(workflow=workflow, node_id="shout")
    Observation.objects.create(
        workflow=workflow,
        node_id="shout",
        number=1,
        run=run,
        run_number=1,
        at=run.created_at,
        workflow_version=1,
    )
    Regression.objects.create(
        workflow=workflow,
        node_id="shout",
        kind="quality_drop",
        since_number=1,
        acknowledged_by=user,
        resolved_by=user,
    )
    from evals_app.services.actions import pin_baseline

    pin_baseline(workflow, run=run, user=user)
    return run


def access_groups() -> Any:
    from django.contrib.auth.models import Group

    return Group.objects.filter(name__in=("viewer", "operator"))


@pytest.mark.parametrize("path", LISTS)
def test_a_list_asks_the_same_number_of_queries_for_one_row_and_for_five(root: Client, path: str) -> None:
    add_rows("0")
    first = queries_of(root, f"/admin/{path}/")
    for number in range(1, 5):
        add_rows(str(number))
    assert queries_of(root, f"/admin/{path}/") == first
    assert first <= 12


def test_lists_of_facts_read_no_outputs_and_never_count_everything(root: Client) -> None:
    add_rows("0")
    for path in ("run", "runnode", "runevent"):
        with CaptureQueriesContext(connection) as seen:
            root.get(f"/admin/workflows_app/{path}/")
        asked = [query["sql"] for query in seen if f'FROM "workflows_app_{path}"' in query["sql"]]
        assert asked
        for sql in asked:
            assert "COUNT(" not in sql or f"LIMIT {facts.MOST_PAGED}" in sql
            for heavy in ('"output"', '"outputs"', '"prompt"', '"data"', '"yaml"', '"resolved"'):
                assert heavy not in sql


def test_facts_can_be_seen_but_neither_added_changed_nor_deleted(root: Client) -> None:
    run = add_rows("0")
    for path, row in (
        ("workflows_app/run", run),
        ("workflows_app/runnode", RunNode.objects.get()),
        ("workflows_app/runevent", RunEvent.objects.get()),
        ("workflows_app/auditentry", AuditEntry.objects.first()),
        ("evals_app/observation", Observation.objects.get()),
        ("evals_app/regression", Regression.objects.get()),
        ("evals_app/blockstatistics", BlockStatistics.objects.get()),
    ):
        assert row is not None
        page = root.get(f"/admin/{path}/{row.pk}/change/")
        assert page.status_code == 200 and b'name="_save"' not in page.content
        assert root.post(f"/admin/{path}/{row.pk}/change/", {}).status_code == 403
        assert root.get(f"/admin/{path}/add/").status_code == 403
        assert root.post(f"/admin/{path}/{row.pk}/delete/", {"post": "yes"}).status_code == 403


def found(client: Client, path: str, term: str) -> int:
    return client.get(f"/admin/workflows_app/{path}/", {"q": term}).context["cl"].result_count


@pytest.mark.storage
def test_runs_are_found_by_id_number_slug_and_external_id(root: Client) -> None:
    run = add_rows("0")
    add_rows("1")
    Run.objects.filter(pk=run.pk).update(external_id="order-7", number=42)
    for term, count in [
        (str(run.pk), 1), ("#42", 1), ("flow-0#42", 1), ("flow-1#42", 0), ("flow", 2), ("flow-1", 1), ("order-7", 1),
        ("nothing", 0), ("#999999999999", 0),
    ]:  # fmt: skip
        assert found(root, "run", term) == count, term
    assert found(root, "runnode", "shout") == 2
    assert found(root, "runnode", f"shout {run.pk}") == 1
    assert found(root, "runevent", "run_started flow-0") == 1
    assert found(root, "auditentry", "user-0 test.row") == 1


QUESTIONS = [
    ("workflows_app/run", ["eval_passed__exact=0", "eval_passed__exact=1", "environment__exact=simulation", "status__exact=failed"]),
    ("workflows_app/run", ["q=flow", "q=nothing", "q=%233", "q=flow-0%233"]),
    ("workflows_app/runnode", ["status__exact=failed", "eval_passed__exact=0", "q=shout", "q=nothing", "q=flow-0%231"]),
    ("workflows_app/runevent", ["event__exact=run_failed", "q=run_started", "q=nothing", "q=flow-0", "q=run_started+%231"]),
    ("evals_app/observation", ["passed__exact=0", "q=shout", "q=nothing", "q=flow-0"]),
]  # fmt: skip


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL reads a small table as a whole")
@pytest.mark.parametrize(("path", "question"), [(path, one) for path, many in QUESTIONS for one in many])
def test_a_filter_or_a_search_never_reads_a_whole_table(
    root: Client, monkeypatch: pytest.MonkeyPatch, path: str, question: str
) -> None:
    monkeypatch.setattr("workflows_app.admin.runs.MOST_PAGED", 1)
    for number in range(3):
        add_rows(str(number))
    table = path.replace("/", "_")
    with CaptureQueriesContext(connection) as seen:
        assert root.get(f"/admin/{path}/?{question}").status_code == 200
    asked = [
        query["sql"] for query in seen if f'FROM "{table}"' in query["sql"] and " WHERE " in query["sql"]
    ]
    assert asked
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [row[-1] for row in cursor.fetchall()]
        assert not any(step.startswith(f"SCAN {table}") for step in plan), (sql, plan)


@pytest.mark.storage
def test_filters_and_names_look_at_the_newest_rows_and_a_run_is_found_whatever_its_age(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = add_rows("0")
    for number in range(1, 4):
        add_rows(str(number))
    monkeypatch.setattr(facts, "MOST_SEARCHED", 2)
    for path, term, count in [
        ("runnode", "shout", 2),
        ("runnode", str(old.pk), 1),
        ("runnode", "shout flow-0#1", 1),
        ("runnode", "nothing flow-0#1", 0),
        ("runnode", "flow-0", 1),
        ("runevent", "run_started", 2),
        ("runevent", "run_started flow-0", 1),
    ]:
        assert found(root, path, term) == count, (path, term)
    pending = root.get("/admin/workflows_app/runnode/?status__exact=pending").context["cl"]
    assert pending.result_count == 2
    assert root.get("/admin/evals_app/observation/?q=flow-0").context["cl"].result_count == 0
    assert root.get("/admin/evals_app/observation/?q=flow-3").context["cl"].result_count == 1


def test_no_page_offers_every_row_in_a_drop_down(root: Client) -> None:
    for number in range(3):
        add_rows(str(number))
    page = squeezed(root.get("/admin/evals_app/pinnedbaseline/add/"))
    assert "<select" not in page
    assert "user-1" not in squeezed(root.get("/admin/workflows_app/apitoken/add/"))
    assert ApiToken.objects.count() == 3 and Workflow.objects.count() == 3


def test_a_list_writes_times_short_and_on_a_clock_of_24_hours(root: Client) -> None:
    run = add_rows("one")
    Run.objects.filter(pk=run.pk).update(created_at=datetime(2026, 3, 1, 16, 5, tzinfo=UTC))
    assert "1 Mar 2026, 16:05" in squeezed(root.get("/admin/workflows_app/run/"))
