"""What the driver does around the blocks: retries, routes, children, takeovers, cancelling."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from tests.factories import SOUL, finish, make_workflow
from tests.timing import PROMPTLY, wait_until, wait_until_blocked
from tests.workflows.engine.providers.openai_server import OpenAIServer, chat, slow
from workflows_app import events, executors, services
from workflows_app.engine.providers import ChatRequest, ChatResponse, Provider
from workflows_app.engine.records import Step
from workflows_app.execution.driver import RunDriver
from workflows_app.models import NodeStatus, Run, RunNode, RunStatus
from workflows_app.security import credentials
from workflows_app.services import leases

FLAKY = """\
version: "1.0"
blocks:
  flaky:
    type: code
    retry_config: {{max_attempts: 3, backoff: fixed, backoff_base_seconds: 0.1{more}}}
    {route}
    code: |
      def main(data):
          raise {error}("not today")
  rescue:
    type: code
    code: |
      def main(data):
          return "rescued"
workflow:
  entry: flaky
"""
CHILD = """\
version: "1.0"
interface:
  inputs:
    - {name: word, type: string, required: true}
  outputs:
    - {name: loud, source: blocks.shout.output}
blocks:
  shout:
    type: code
    code: |
      def main(data):
          return data["inputs"]["word"].upper()
    assertions:
      - {type: equals, value: HEY}
"""
PARENT = """\
version: "1.0"
blocks:
  child:
    type: workflow
    workflow_ref: child
    inputs: {word: inputs.word}
  after:
    type: code
    depends: child
    code: |
      def main(data):
          return data["child"]
"""
SLEEPER = """\
version: "1.0"
blocks:
  sleep:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(20)
"""


def flaky(error="ValueError", more="", route="") -> str:
    text = FLAKY.format(error=error, more=more, route=route)
    return text if route else text.replace("  rescue:", "  rescue:\n    depends: flaky")


def attempts(run: Run) -> list[tuple[str, int, str]]:
    return list(run.nodes.order_by("pk").values_list("node_id", "attempt", "status"))


@pytest.mark.storage
def test_failed_block_is_tried_again_as_a_new_attempt(executor):
    run = finish(services.start_run(make_workflow(flaky(), "flaky")))
    assert run.status == RunStatus.FAILED
    assert attempts(run)[:3] == [("flaky", n, NodeStatus.FAILED) for n in (1, 2, 3)]
    retries = [event.data["will_retry"] for event in run.events.filter(event="node_failed")]
    assert retries == [True, True, False]


def test_error_that_is_not_retryable_is_not_tried_again(executor):
    yaml = flaky(error="KeyError", more=", non_retryable_errors: [KeyError]")
    run = finish(services.start_run(make_workflow(yaml, "flaky")))
    assert attempts(run)[0] == ("flaky", 1, NodeStatus.FAILED)
    assert run.nodes.filter(node_id="flaky").count() == 1


def test_error_route_takes_over_and_the_run_completes(executor):
    run = finish(services.start_run(make_workflow(flaky(route="error_route: rescue"), "flaky")))
    assert run.status == RunStatus.COMPLETED
    assert run.nodes.get(node_id="rescue").output == "rescued"


@pytest.mark.storage
def test_child_run_is_linked_both_ways_and_graded_with_its_own_assertions(executor):
    make_workflow(CHILD, "child")
    run = finish(services.start_run(make_workflow(PARENT, "parent"), {"word": "hey"}))
    assert run.status == RunStatus.COMPLETED
    node = run.nodes.get(node_id="child")
    child = node.child_run
    assert (child.parent_run, child.depth, child.outputs) == (run, 1, {"loud": "HEY"})
    assert child.eval_passed is True and run.eval_passed is None
    assert '"loud": "HEY"' in run.nodes.get(node_id="after").output


def test_child_with_bad_inputs_fails_the_block_by_name(executor):
    make_workflow(CHILD, "child")
    run = finish(services.start_run(make_workflow(PARENT, "parent"), {"word": 7}))
    assert run.status == RunStatus.FAILED
    assert "word" in run.error["message"]


@pytest.mark.storage
def test_run_uses_the_child_version_it_started_with(executor):
    make_workflow(CHILD, "child")
    parent = make_workflow(PARENT, "parent")
    lease = services.start_held_run(parent, {"word": "hey"})
    make_workflow(CHILD.replace("upper", "title"), "child")
    executor.drive(lease)
    assert Run.objects.get(parent_run=lease.run).outputs == {"loud": "HEY"}


def cancelled_promptly(executor, run: Run) -> bool:
    services.cancel_run(Run.objects.get(pk=run.pk))
    begun = time.monotonic()
    wait_until(lambda: not executor.running)
    return time.monotonic() - begun < PROMPTLY


@pytest.mark.storage
def test_cancel_reaches_into_a_child_run(executor):
    make_workflow(SLEEPER, "child")
    run = services.start_run(make_workflow(PARENT, "parent"), {"word": "hey"})
    wait_until(lambda: RunNode.objects.filter(node_id="sleep", status=NodeStatus.RUNNING).exists())
    assert cancelled_promptly(executor, run)
    assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELLED}
    assert not RunNode.objects.filter(status=NodeStatus.RUNNING).exists()


@pytest.mark.storage
def test_cancel_and_failure_at_once_do_not_wait_for_each_other(transactional_db):
    lease = services.start_held_run(make_workflow(), {})
    services.start_node(lease, Step(node_id="shout", block_id="shout", kind="code"), "code", 1)
    errors = []

    def fail():
        try:
            services.fail_run(lease, "timeout", "Too slow.")
        except Exception as error:  # noqa: BLE001 - checked below
            errors.append(error)
        finally:
            connection.close()

    failing = threading.Thread(target=fail)
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=lease.run.pk)  # as a cancel that has just begun
        failing.start()
        wait_until_blocked()  # it waits for the run, and must hold nothing that the cancel needs
        services.cancel_run(lease.run)
    failing.join(30)
    assert [type(error) for error in errors] == [events.LeaseLost]
    assert lease.run.nodes.get().status == NodeStatus.CANCELLED
    assert Run.objects.get().status == RunStatus.CANCELLED


def start_asking(server: OpenAIServer, settings) -> Run:
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = server.url, "sk-test-0123456789"
    credentials.forget()
    yaml = SOUL.replace(
        "provider: demo, model_name: demo-small", "provider: openai, model_name: gpt-4o-mini"
    ) + ('version: "1.0"\nblocks:\n  ask: {type: llm, soul_ref: analyst, prompt: Hello}\n')
    return services.start_run(make_workflow(yaml, "asking"))


def test_cancel_reaches_into_a_provider_call(executor, settings):
    with OpenAIServer(slow(20)) as server:
        run = start_asking(server, settings)
        wait_until(lambda: server.requests)
        assert cancelled_promptly(executor, run)


@pytest.mark.storage
@pytest.mark.parametrize("count", [-5, 10**30, 2**62], ids=["negative", "100 bits", "63 bits in total"])
def test_tokens_that_no_database_adds_up_are_unknown_and_the_call_is_made_once(executor, settings, count):
    with OpenAIServer(chat(prompt_tokens=count, completion_tokens=count)) as server:
        run = finish(start_asking(server, settings))
        assert run.status == RunStatus.COMPLETED
        assert len(server.requests) == 1
    node = run.nodes.get()
    assert (node.tokens, node.cost_usd, run.total_tokens) == (None, None, 0)


class OddProvider(Provider):
    """Reports what cannot be."""

    async def complete(self, request: ChatRequest) -> ChatResponse:
        return ChatResponse(
            text="a\0b\ud800",
            prompt_tokens=-1,
            completion_tokens=10**25,
            cached_tokens=10**25,
            model="odd\0",
            latency_ms=float("inf"),
            cost_usd=float("nan"),
        )


@pytest.mark.storage
def test_odd_figures_of_any_provider_are_unknown(executor, monkeypatch):
    monkeypatch.setattr(executor.resources, "provider", lambda *_: OddProvider())
    yaml = SOUL + 'version: "1.0"\nblocks:\n  ask: {type: llm, soul_ref: analyst, prompt: Hello}\n'
    run = finish(services.start_run(make_workflow(yaml, "odd")))
    assert attempts(run) == [("ask", 1, NodeStatus.COMPLETED)]
    node = run.nodes.get()
    assert (node.output, node.details["model"]) == ("a\ufffdb\ufffd", "odd\ufffd")
    assert (node.tokens, node.cost_usd, run.cost_usd) == (None, None, None)
    assert 0 <= node.latency_ms < 60_000, "measured, where the reported one cannot be"


@pytest.mark.storage
def test_exit_that_no_database_keeps_is_made_storable_and_the_block_runs_once(executor):
    yaml = SLEEPER.replace("time.sleep(20)", 'return {"exit_handle": "x\\0"}')
    run = finish(services.start_run(make_workflow(yaml, "leaving")))
    assert attempts(run) == [("sleep", 1, NodeStatus.COMPLETED)]
    assert run.nodes.get().exit_handle == "x\ufffd"


@pytest.mark.storage
def test_former_owner_that_wakes_up_late_writes_nothing(transactional_db):
    lease = services.start_held_run(make_workflow(), {})
    Run.objects.filter(pk=lease.run.pk).update(fence=lease.fence + 1)
    with pytest.raises(events.LeaseLost):
        services.begin_run(lease)
    assert not lease.run.events.exists()


@pytest.mark.storage
@pytest.mark.parametrize(
    "change", [{"fence": F("fence") + 1}, {"status": RunStatus.COMPLETED}], ids=["taken over", "over"]
)
def test_former_owner_that_wakes_up_late_starts_no_child(transactional_db, change):
    make_workflow(CHILD, "child")
    lease = services.start_held_run(make_workflow(PARENT, "parent"), {"word": "hey"})
    node = services.start_node(lease, Step(node_id="child", block_id="child", kind="workflow"), "workflow", 1)
    Run.objects.filter(pk=lease.run.pk).update(**change)
    with pytest.raises(events.LeaseLost):
        services.start_child(lease, node, "child", {"word": "hey"})
    assert Run.objects.get() == lease.run
    assert not RunNode.objects.exclude(child_run=None).exists()


@pytest.mark.storage
def test_only_one_of_many_claims_a_run(transactional_db):
    run = services.start_run(make_workflow(), {})
    won, barrier = [], threading.Barrier(6)

    def compete():
        barrier.wait()
        if leases.claim(run.pk):
            won.append(1)
        connection.close()

    threads = [threading.Thread(target=compete) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


@pytest.mark.storage
@pytest.mark.parametrize(
    ("ends_in_leases", "is_free"), [(-0.1, True), (0.9, False), (leases.FARTHEST_END + 1, True)]
)
def test_lease_that_ends_further_away_than_any_can_is_void(transactional_db, ends_in_leases, is_free):
    run = services.start_held_run(make_workflow(), {}).run
    length = timedelta(seconds=leases.lease_seconds())
    Run.objects.filter(pk=run.pk).update(
        owner="elsewhere:1:1", lease_expires_at=Now() + ends_in_leases * length
    )
    assert (leases.claimable((), limit=9) == [run.pk]) == is_free
    assert (leases.claim(run.pk) is not None) == is_free


@pytest.mark.storage
def test_clock_that_is_set_back_makes_no_negative_time(transactional_db, monkeypatch):
    lease = services.start_held_run(make_workflow(), {})
    services.begin_run(lease)
    begun = lease.run.started_at
    monkeypatch.setattr("workflows_app.clock.shared_now", lambda: begun - timedelta(hours=1))
    services.finish_run(lease, RunStatus.COMPLETED)
    lease.run.refresh_from_db()
    assert (lease.run.finished_at, lease.run.duration_ms) == (begun, 0.0)


@pytest.mark.storage
def test_run_fails_after_a_bounded_number_of_takeovers(executor):
    lease = services.start_held_run(make_workflow(), {})
    Run.objects.filter(pk=lease.run.pk).update(
        takeovers=leases.MOST_TAKEOVERS, owner=f"{leases.host()}:999999:1", lease_expires_at=None
    )
    run = finish(lease.run)
    assert run.status == RunStatus.FAILED
    assert run.error["type"] == "abandoned" and "takeovers" in run.error["message"]


@pytest.mark.storage
def test_stopped_executor_gives_its_runs_to_the_next_one(executor):
    from workflows_app.executors import ExecutionService

    yaml = SLEEPER.replace("time.sleep(20)", "time.sleep(0.5)\n          return 'done'")
    run = services.start_run(make_workflow(yaml, "sleeper"))
    wait_until(lambda: run.nodes.filter(status=NodeStatus.RUNNING).exists())
    executor.stop()
    assert not Run.objects.get(pk=run.pk).is_terminal
    other = ExecutionService(concurrency=1)
    other.start()
    try:
        assert finish(run).status == RunStatus.COMPLETED
    finally:
        other.stop()
    assert attempts(run) == [("sleep", 1, NodeStatus.FAILED), ("sleep", 2, NodeStatus.COMPLETED)]


@pytest.mark.storage
def test_stopping_the_executor_fails_no_block(transactional_db, monkeypatch):
    monkeypatch.setattr(
        "workflows_app.execution.driver.NOTICE_SECONDS", 30
    )  # the stopped block is seen first
    leaving = executors.ExecutionService(concurrency=1)
    leaving.start()
    run = services.start_run(make_workflow(SLEEPER, "sleeper"))
    wait_until(lambda: RunNode.objects.filter(run=run, status=NodeStatus.RUNNING).exists())
    leaving.stop()
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert not run.nodes.filter(status=NodeStatus.FAILED).exists()
    assert leases.claim(run.pk) is not None, "it was not given back"


ONE_AND_A_HALF_SECONDS = SLEEPER.replace("time.sleep(20)", "time.sleep(1.5)\n          return 'done'")


@pytest.mark.storage
@pytest.mark.parametrize("door", ["sweep", "message"])
def test_process_that_stood_still_goes_on_with_its_own_runs(executor, door):
    run = services.start_run(make_workflow(ONE_AND_A_HALF_SECONDS, "sleeper"))
    wait_until(lambda: run.nodes.filter(status=NodeStatus.RUNNING).exists())
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))
    if door == "sweep":
        executor._swept = -executors.SWEEP_SECONDS
        executor.wake(run.pk)
    else:
        assert not executor.execute(run.pk), "it executes here already"
    run = finish(run)
    assert attempts(run) == [("sleep", 1, NodeStatus.COMPLETED)]
    assert (run.status, run.takeovers, run.fence) == (RunStatus.COMPLETED, 0, 1)


@pytest.mark.storage
def test_driver_that_ends_leaves_the_entry_of_a_later_one(executor):
    first = services.start_held_run(make_workflow(), {})
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    second = leases.claim(first.run.pk)
    old, new = (RunDriver(lease, executor.resources, executor._watched) for lease in (first, second))
    with executor._watched(old):
        entered = executor._watched(new)
        entered.__enter__()
    assert executor._drivers == {first.run.pk: new}, "nobody would renew its lease"
    entered.__exit__(None, None, None)
    assert executor.running == 0


@pytest.mark.storage
@pytest.mark.parametrize("write", ["start_node", "finish_node"])
def test_database_that_stalls_makes_no_block_run_again(executor, monkeypatch, write):
    monkeypatch.setattr("workflows_app.execution.driver.RETRY_SECONDS", 0.1)
    real, refused = getattr(services, write), []

    def stalling(*args, **kwargs):
        if len(refused) < 3:
            refused.append(1)
            raise OperationalError("database is locked")
        return real(*args, **kwargs)

    monkeypatch.setattr(services, write, stalling)
    run = finish(services.start_run(make_workflow()))
    assert len(refused) == 3
    assert attempts(run) == [("shout", 1, NodeStatus.COMPLETED)]
    assert (run.status, run.takeovers) == (RunStatus.COMPLETED, 0)


@pytest.mark.storage
def test_outcome_that_was_committed_though_its_connection_was_lost_is_not_written_twice(
    executor, monkeypatch
):
    monkeypatch.setattr("workflows_app.execution.driver.RETRY_SECONDS", 0.1)
    real, lost = services.finish_node, []

    def losing(*args, **kwargs):
        real(*args, **kwargs)
        if not lost:
            lost.append(1)
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(services, "finish_node", losing)
    run = finish(services.start_run(make_workflow()))
    assert attempts(run) == [("shout", 1, NodeStatus.COMPLETED)]
    assert (run.status, run.nodes_done) == (RunStatus.COMPLETED, 1)
    assert run.events.filter(event="node_completed").count() == 1


@pytest.mark.storage
def test_block_finished_in_a_child_is_progress_of_the_runs_above(executor):
    make_workflow(SLEEPER, "slow")
    middle = """\
version: "1.0"
blocks:
  first:
    type: code
    code: |
      def main(data):
          return "done"
  slow: {type: workflow, workflow_ref: slow, depends: first}
"""
    make_workflow(middle, "child")
    top = 'version: "1.0"\nblocks:\n  child: {type: workflow, workflow_ref: child}\n'
    lease = services.start_held_run(make_workflow(top, "top"), {})
    Run.objects.filter(pk=lease.run.pk).update(
        takeovers=leases.MOST_TAKEOVERS - 1, lease_expires_at=Now() - timedelta(seconds=1)
    )
    executor.wake(lease.run.pk)
    wait_until(lambda: RunNode.objects.filter(node_id="sleep", status=NodeStatus.RUNNING).exists())
    assert Run.objects.get(pk=lease.run.pk).takeovers == 0
    services.cancel_run(Run.objects.get(pk=lease.run.pk))
    wait_until(lambda: not executor.running)


@pytest.mark.storage
def test_row_locked_by_a_frozen_process_does_not_hold_up_a_claim(transactional_db):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no locks of rows")
    run = services.start_run(make_workflow(), {})
    locked, done = threading.Event(), threading.Event()

    def freeze():
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=run.pk)
            locked.set()
            done.wait(PROMPTLY)
        connection.close()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    try:
        assert locked.wait(PROMPTLY)
        begun = time.monotonic()
        assert leases.claim(run.pk) is None
        assert time.monotonic() - begun < 1
    finally:
        done.set()
        frozen.join()
    assert leases.claim(run.pk) is not None
