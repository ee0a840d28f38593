"""Runs from elsewhere: graded, observed and kept like our own, all or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from evals_app.models import BlockStatistics, Observation
from evals_app.services import evaluation as services
from evals_app.services import ingest as ingesting
from tests.callers import caller
from tests.factories import make_workflow
from workflows_app.models import Run, RunEvent, RunNode

pytestmark = pytest.mark.django_db
YAML = """\
version: "1.0"
souls:
  a: {role: A, system_prompt: x, provider: demo, model_name: demo-small}
blocks:
  extract:
    type: llm
    soul_ref: a
    prompt: x
    assertions:
      - {type: is-json}
      - {type: cost, threshold: 0.05}
  write: {type: llm, soul_ref: a, prompt: x, depends: extract}
"""
NODES = [
    {
        "node_id": "extract",
        "output": {"total": 3},
        "cost_usd": 0.01,
        "tokens": {"prompt": 5, "completion": 7},
    },
    {"node_id": "write", "output": "done", "latency_ms": 12, "soul_version": "v7"},
]


def report(**changes: Any) -> dict[str, Any]:
    return {"workflow": "invoices", "external_id": "j1", "status": "completed", "nodes": NODES, **changes}


@pytest.fixture
def operator() -> Any:
    make_workflow(YAML, "invoices")
    return caller("operator")


@pytest.mark.storage
def test_an_ingested_run_is_graded_observed_and_announced_like_our_own(operator: Any) -> None:
    response = operator.post("/api/runs/ingest/", report())
    assert response.status_code == 201, response.content
    body = response.json()
    assert (body["source"], body["eval_passed"], body["cost_usd"]) == ("ingest", True, 0.01)
    assert body["tokens"] == {"prompt": 5, "completion": 7, "total": 12}
    assert body["outputs"] == {"write": "done"}
    assert body["eval_counts"] == {"passed": 2, "failed": 0, "error": 0}
    extract, write = body["nodes"]
    assert (extract["eval_score"], extract["passed"], len(extract["assertions"])) == (1.0, True, 2)
    assert (write["eval_score"], write["passed"], write["assertions"]) == (None, None, [])
    assert RunNode.objects.get(node_id="extract").output == '{"total": 3}'
    assert Observation.objects.get(node_id="write").soul_version == "v7"
    events = list(RunEvent.objects.order_by("seq").values_list("seq", "event"))
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    assert [name for _, name in events] == [
        "run_started", "node_started", "node_completed", "node_eval_complete",
        "node_started", "node_completed", "run_completed",
    ]  # fmt: skip
    assert Run.objects.get().last_seq == len(events)
    began = RunEvent.objects.get(seq=1).data
    assert (began["status"], began["cost_usd"], began["eval_passed"]) == ("running", None, None)
    second = operator.post("/api/runs/ingest/", report(external_id="j2")).json()
    assert second["nodes"][0]["delta"]["baseline_run_count"] == 1


FAULTS = [
    ({"nodes": [{"node_id": "extrakt", "output": "x"}]}, ["nodes[0].node_id"]),
    ({"nodes": [{"node_id": "extract"}]}, ["nodes[0].output"]),
    ({"nodes": [NODES[0], {"node_id": "write", "output": "", "cost_usd": -1}]}, ["nodes[1].cost_usd"]),
    (
        {"nodes": [{"node_id": "nope", "output": ""}, {"node_id": "write", "output": "", "latency": 1}]},
        ["nodes[1].latency", "nodes[0].node_id"],
    ),
    ({"nodes": [{**NODES[0], "iteration": 1}, {**NODES[0], "iteration": 1}]}, ["nodes[1]"]),
    ({"nodes": [{**NODES[0], "started_at": "2026-01-02T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z"}]},
     ["nodes[0].finished_at"]),
    ({"finished_at": "2999-01-01T00:00:00Z"}, ["finished_at"]),
    ({"status": "running"}, ["status"]),
    ({"workflow": "nothing"}, ["workflow"]),
    ({"version": 9}, ["version"]),
    ({"nodes": [NODES[0]] * 1001}, ["nodes"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "paths"), FAULTS)
def test_every_fault_has_its_position_and_nothing_is_kept(
    changes: dict[str, Any], paths: list[str], operator: Any
) -> None:
    response = operator.post("/api/runs/ingest/", report(**changes))
    assert response.status_code == 400, response.content
    assert [detail["path"] for detail in response.json()["error"]["details"]] == paths
    assert not Run.objects.exists()
    assert not BlockStatistics.objects.exists()


@pytest.mark.storage
def test_the_same_delivery_again_is_harmless(operator: Any) -> None:
    first = operator.post("/api/runs/ingest/", report())
    again = operator.post("/api/runs/ingest/", report())
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["nodes"] == first.json()["nodes"]
    assert Observation.objects.count() == 2


@pytest.mark.storage
def test_a_call_repeated_by_its_key_gets_its_first_answer(operator: Any) -> None:
    headers = {"Idempotency-Key": "nightly"}
    first = operator.post("/api/runs/ingest/", report(), headers=headers)
    again = operator.post("/api/runs/ingest/", report(), headers=headers)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert "Idempotent-Replayed" in again.headers and "Idempotent-Replayed" not in first.headers
    assert operator.post("/api/runs/ingest/", report(external_id="j2"), headers=headers).status_code == 422


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_the_same_delivery_at_the_same_moment_is_one_run() -> None:
    make_workflow(YAML, "invoices")
    clients = [caller("operator") for _ in range(5)]

    def deliver(client: Any) -> int:
        try:
            return int(client.post("/api/runs/ingest/", report()).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        assert sorted(pool.map(deliver, clients)) == [200, 200, 200, 200, 201]
    assert Run.objects.count() == 1
    assert Observation.objects.count() == 2


@pytest.mark.storage
def test_failed_and_simulated_runs_feed_no_baseline(operator: Any) -> None:
    failed = [NODES[0], {"node_id": "write", "error": "out of memory"}]
    response = operator.post("/api/runs/ingest/", report(status="failed", nodes=failed))
    assert response.json()["error"] == {"type": "external", "message": "write: out of memory"}
    assert (
        operator.post("/api/runs/ingest/", report(external_id="s", environment="simulation")).status_code
        == 201
    )
    assert not Observation.objects.exists()


@pytest.mark.storage
def test_rounds_are_counted_in_the_order_sent_and_the_last_one_speaks(operator: Any) -> None:
    rounds = [{"node_id": "extract", "output": "no json", "cost_usd": 0.01}, NODES[0]]
    body = operator.post("/api/runs/ingest/", report(nodes=rounds)).json()
    assert [(node["iteration"], node["passed"]) for node in body["nodes"]] == [(1, False), (2, True)]
    assert body["eval_passed"] is True
    assert Observation.objects.get().passed is True


@pytest.mark.storage
def test_secrets_and_texts_no_table_takes_are_made_harmless(operator: Any) -> None:
    key = "sk-proj-" + "a1B2" * 12
    failed = {"node_id": "extract", "error": {"type": key, "message": f"refused {key}"}}
    nodes = [failed, {"node_id": "write", "output": f"key {key} and \0"}]
    assert operator.post("/api/runs/ingest/", report(nodes=nodes, inputs={"key": key})).status_code == 201
    assert key not in str([(node.error, node.run.inputs) for node in RunNode.objects.all()])
    stored = RunNode.objects.get(node_id="write").output
    assert key not in stored
    assert "\0" not in stored
    assert key not in str(list(RunEvent.objects.values_list("data", flat=True)))


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "slow"}])
def test_nodes_are_graded_before_the_transaction_and_not_for_ever(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workflow(YAML, "invoices")
    within: list[bool] = []
    grade = services.grade
    monkeypatch.setattr(
        services, "grade", lambda *args: (within.append(connection.in_atomic_block), grade(*args))[1]
    )
    client = caller("operator")
    assert client.post("/api/runs/ingest/", report(), headers=headers).status_code == 201
    assert within and not any(within)
    monkeypatch.setattr(ingesting, "GRADING_SECONDS", 0.0)
    response = client.post("/api/runs/ingest/", report(external_id="j2"))
    assert (response.status_code, response.json()["error"]["details"][0]["path"]) == (400, "nodes[0]")
    assert "send fewer in one call" in response.json()["error"]["details"][0]["message"]
    assert Run.objects.count() == 1
