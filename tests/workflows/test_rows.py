"""Rows written and read without the ORM are what the ORM would have written and read."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from evals_app.models import BlockStatistics
from tests.factories import make_workflow, run_now
from workflows_app import rows
from workflows_app.models import NodeStatus, Run, RunNode, Workflow, WorkflowVersion

pytestmark = pytest.mark.django_db(transaction=True)
ELSEWHERE = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def run() -> Run:
    return run_now(make_workflow())


def values_of(row: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.parametrize("model", [Workflow, WorkflowVersion, Run, RunNode, BlockStatistics])
def test_a_selected_row_is_the_orms(run: Run, model: type[models.Model]) -> None:
    expected = model._default_manager.get()
    (found,) = rows.select(model, "id = %s", [rows.key_of(expected)])
    assert values_of(found) == values_of(expected)
    assert not found._state.adding


def test_a_field_left_out_is_read_when_asked_for(run: Run) -> None:
    (node,) = rows.select(RunNode, "run_id = %s", [rows.key_of(run)], without=("output",))
    assert node.get_deferred_fields() == {"output"}
    assert "HELLO" in node.output


def test_an_inserted_row_keeps_every_kind_of_value(run: Run) -> None:
    node = RunNode(
        run=run,
        node_id="odd",
        block_type="llm",
        status=NodeStatus.COMPLETED,
        output='“ü”\n"quoted" %s ?',
        cost_usd=Decimal("0.25"),
        latency_ms=3,
        tokens={"prompt": 1, "nested": ["ü", None, 1.5, {"%s": "?"}]},
        child_run=run,
        eval_passed=False,
        started_at=datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=ELSEWHERE),
        finished_at=datetime(2026, 1, 31, tzinfo=ELSEWHERE),
    )
    rows.insert(node)
    stored = RunNode.objects.get(pk=node.pk)
    assert values_of(stored) == values_of(node)
    assert RunNode.objects.filter(started_at=node.started_at, child_run=run).exists()


def test_an_update_writes_the_named_fields_alone(run: Run) -> None:
    node = run.nodes.get()
    node.output, node.details = "new", {"also": "new"}
    assert rows.update(node, ("details",))
    stored = RunNode.objects.get(pk=node.pk)
    assert stored.details == {"also": "new"}
    assert stored.output != "new"


def test_an_update_that_may_act_once_acts_once(run: Run) -> None:
    assert run.observed_at is not None
    run.observed_at += timedelta(days=1)
    assert not rows.update(run, ("observed_at",), only_if_null="observed_at")


def test_a_broken_transaction_takes_no_statement(run: Run) -> None:
    node = run.nodes.get()
    with pytest.raises(TransactionManagementError), transaction.atomic():
        again = RunNode(run=run, node_id=node.node_id, iteration=node.iteration, attempt=node.attempt)
        with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
            rows.insert(again)
        rows.update(node, ("status",))


def test_statements_are_counted_like_any_other(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        rows.select(Run, "id = %s", [rows.key_of(run)])
    assert len(queries) == 1
