"""Runs from start to end, through the real executor, provider, sandbox and evaluator."""

import pytest

from tests.factories import SOUL, finish, make_workflow
from tests.timing import PROMPTLY, wait_until
from workflows_app import services
from workflows_app.models import NodeStatus, RunStatus

MIXED = (
    SOUL
    + """\
version: "1.0"
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: "Analyse {{ inputs.topic }}"
    assertions:
      - {type: word-count, value: {min: 3}}
      - {type: cost, threshold: 0.05}
  tidy:
    type: code
    depends: analyze
    code: |
      def main(data):
          return {"title": data["blocks"]["analyze"]["output"].splitlines()[0]}
    assertions:
      - {type: is-json}
  never:
    type: code
    depends: analyze
    code: |
      def main(data):
          return "side by side"
"""
)


@pytest.mark.storage
def test_run_completes_with_every_block_evaluated_in_order(executor):
    run = finish(services.start_run(make_workflow(MIXED, "mixed"), {"topic": "tea"}))
    assert (run.status, run.eval_passed, run.eval_score) == (RunStatus.COMPLETED, True, 1.0)
    assert run.eval_counts == {"passed": 3, "failed": 0, "error": 0}
    assert {node.node_id: node.status for node in run.nodes.all()} == dict.fromkeys(
        ("analyze", "tidy", "never"), NodeStatus.COMPLETED
    )
    events = list(run.events.values_list("seq", "event"))
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    names = [event for _, event in events]
    assert names[0] == "run_started" and names[-1] == "run_completed"
    assert names[1:4] == ["node_started", "node_completed", "node_eval_complete"]
    assert names.count("node_eval_complete") == 2, "the block without assertions sends no eval event"


def test_block_without_assertions_is_measured_but_not_graded(executor):
    run = finish(services.start_run(make_workflow(MIXED, "mixed"), {"topic": "tea"}))
    bare = run.nodes.get(node_id="never")
    assert (bare.eval_score, bare.eval_passed, bare.eval_results) == (None, None, None)
    assert bare.evaluated_at is not None and bare.latency_ms is not None


def test_failing_block_fails_the_run_and_says_why(executor):
    workflow = make_workflow(
        'version: "1.0"\nblocks:\n  boom:\n    type: code\n    code: |\n      def main(data):\n          raise ValueError("no tea")\n',
        "boom",
    )
    run = finish(services.start_run(workflow))
    assert run.status == RunStatus.FAILED
    assert "no tea" in run.error["message"]
    assert run.nodes.get().status == NodeStatus.FAILED


@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(30)"])
def test_cancel_stops_a_code_block_promptly(executor, body):
    workflow = make_workflow(
        f'version: "1.0"\nblocks:\n  slow:\n    type: code\n    code: |\n      def main(data):\n          {body}\n',
        "slow",
    )
    run = services.start_run(workflow)
    wait_until(lambda: run.nodes.filter(status=NodeStatus.RUNNING).exists(), "the block runs")
    services.cancel_run(run)
    wait_until(lambda: not executor.running, "the end of the cancelled run", PROMPTLY)
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert run.nodes.get().status == NodeStatus.CANCELLED
    assert list(run.events.values_list("event", flat=True))[-1] == "run_cancelled"
    with pytest.raises(services.Refused):
        services.cancel_run(run)
