"""Statements written by hand store and return what the ORM would."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from tests.factories import make_workflow, run_now
from workflows_app.models import NodeStatus, Run, RunEvent, RunNode
from workflows_app.storage.statements import insert_many, update_returning

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
ELSEWHERE = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def run() -> Run:
    return run_now(make_workflow())


def values_of(row: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def node_of(run: Run, node_id: str, **fields: Any) -> RunNode:
    return RunNode(run=run, node_id=node_id, block_type="llm", status=NodeStatus.COMPLETED, **fields)


def test_inserted_rows_keep_every_kind_of_value_and_learn_their_keys(run: Run) -> None:
    odd = node_of(
        run,
        "odd",
        output='“ü”\n"quoted" %s ?\t\\N',
        cost_usd=Decimal("0.25"),
        latency_ms=3,
        tokens={"prompt": 1, "nested": ["ü", None, 1.5, {"%s": "?"}]},
        child_run=run,
        eval_passed=False,
        started_at=datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=ELSEWHERE),
        finished_at=datetime(2026, 1, 31, tzinfo=ELSEWHERE),
    )
    empty = node_of(run, "empty")
    insert_many([odd, empty])
    for node in (odd, empty):
        assert values_of(RunNode.objects.get(pk=node.pk)) == values_of(node)
        assert not node._state.adding
    assert RunNode.objects.filter(started_at=odd.started_at, child_run=run).exists()
    assert RunNode.objects.filter(pk=empty.pk, tokens__isnull=True).exists()


def test_rows_inserted_without_keys_are_all_there(run: Run) -> None:
    insert_many(
        [RunEvent(run=run, seq=1000 + number, event="x", data={"n": number}) for number in range(200)],
        needs_keys=False,
    )
    stored = run.events.filter(seq__gte=1000).order_by("seq")
    assert [event.data["n"] for event in stored] == list(range(200))


def test_nothing_to_insert_asks_nothing(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        insert_many([])
    assert len(queries) == 0


def test_an_update_writes_the_named_fields_and_returns_what_is_stored(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(cost_usd=None)
    run.error = {"not": "named"}
    with CaptureQueriesContext(connection) as queries:
        found = update_returning(
            run,
            ["last_seq", "cost_usd"],
            add={"last_seq": 2, "cost_usd": 0.5},
            change={"outputs": {"ü": [None, "%s"]}, "started_at": datetime(2026, 1, 31, tzinfo=ELSEWHERE)},
        )
    assert len(queries) == 1
    stored = Run.objects.get(pk=run.pk)
    assert found == (run.last_seq + 2, 0.5) == (stored.last_seq, stored.cost_usd)
    assert stored.outputs == {"ü": [None, "%s"]}
    assert stored.started_at == datetime(2026, 1, 31, tzinfo=ELSEWHERE)
    assert stored.error is None


def test_an_update_whose_condition_does_not_hold_changes_nothing(run: Run) -> None:
    before = values_of(Run.objects.get(pk=run.pk))
    assert update_returning(run, ["last_seq"], add={"last_seq": 1}, only_if={"fence": run.fence + 1}) is None
    assert values_of(Run.objects.get(pk=run.pk)) == before


def test_no_json_is_the_databases_null(run: Run) -> None:
    assert update_returning(run, ["last_seq"], add={"last_seq": 1}, change={"outputs": None})
    assert Run.objects.filter(pk=run.pk, outputs__isnull=True).exists()


def test_a_broken_transaction_takes_no_statement(run: Run) -> None:
    node = run.nodes.get()
    again = node_of(run, node.node_id, iteration=node.iteration, attempt=node.attempt)
    with pytest.raises(TransactionManagementError), transaction.atomic():
        with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
            insert_many([again])
        update_returning(run, ["last_seq"], add={"last_seq": 1})
