"""From a finished block to its verdict, its delta, and the observation it leaves."""

import pytest
from django.db import OperationalError

from evals_app.evidence.measures import unpacked
from evals_app.models import BlockStatistics, Observation
from evals_app.observers import EvalObserver
from evals_app.services import actions
from evals_app.services import evaluation as evals
from evals_app.services.ingest import Report
from evals_app.services.observation import rebuild_statistics
from tests.factories import make_workflow, run_now
from workflows_app import events, executors, services
from workflows_app.models import Environment, EventName, Run, RunNode, RunStatus, Source
from workflows_app.signals import block_completed, run_finished

PARROT = """\
version: "1.0"
blocks:
  say:
    type: code
    code: |
      def main(data):
          return data["inputs"]["text"]
    assertions:
      - {type: contains, value: "yes", metric: agreement}
      - {type: word-count, value: {max: 3}, weight: 3}
  bare:
    type: code
    depends: say
    code: |
      def main(data):
          return "nothing to check"
"""


@pytest.fixture
def parrot(transactional_db):
    return make_workflow(PARROT, "parrot")


def say(workflow, text="yes", **options) -> Run:
    return run_now(workflow, {"text": text}, **options)


@pytest.mark.storage
def test_node_stores_score_verdict_results_and_event(parrot):
    run = say(parrot, "no, four words here")
    node = run.nodes.get(node_id="say")
    assert (node.eval_score, node.eval_passed) == (0.0, False)
    assert [one["index"] for one in node.eval_results["assertions"]] == [0, 1]
    assert node.eval_results["named_scores"] == {"agreement": 0.0}
    assert node.eval_results["error"] is None
    event = run.events.get(event=EventName.NODE_EVAL_COMPLETE)
    assert event.data["passed"] is False and event.data["eval_score"] == 0.0
    assert event.data["node"] == node.pk and event.data["delta"] is None
    assert (run.eval_score, run.eval_passed) == (0.0, False)
    assert run.eval_counts == {"passed": 0, "failed": 2, "error": 0}


def test_weights_count_in_the_score(parrot):
    assert say(parrot, "no").nodes.get(node_id="say").eval_score == 0.75


@pytest.mark.storage
def test_second_evaluation_of_a_node_changes_nothing(parrot):
    run = say(parrot)
    node = run.nodes.select_related("run__version__workflow", "run__workflow").get(node_id="say")
    before = run.events.count()
    block_completed.send_robust(sender=RunNode, node=node)
    assert evals.evaluate_node(node) is False
    assert run.events.count() == before
    assert Run.objects.get(pk=run.pk).eval_counts == run.eval_counts


@pytest.mark.storage
def test_former_owner_that_wakes_up_late_evaluates_nothing(parrot):
    run = say(parrot)
    node = run.nodes.select_related("run__version__workflow", "run__workflow").get(node_id="say")
    run.nodes.filter(pk=node.pk).update(evaluated_at=None)
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, fence=node.run.fence + 1)
    before = run.events.count()
    assert evals.evaluate_node(node) is False
    assert run.events.count() == before
    assert RunNode.objects.get(pk=node.pk).evaluated_at is None, "that is for the new owner to do"


def test_broken_evaluator_is_recorded_and_never_looks_like_a_pass(parrot, monkeypatch):
    def broken(*_):
        raise RuntimeError("no plan today")

    monkeypatch.setattr(evals, "plan_for", broken)
    run = say(parrot)
    node = run.nodes.get(node_id="say")
    assert (node.eval_passed, node.eval_score) == (False, None)
    assert "no plan today" in node.eval_results["error"]
    assert (run.status, run.eval_passed) == ("completed", False)
    assert run.eval_counts["error"] >= 1


@pytest.mark.storage
def test_node_left_unevaluated_by_a_dead_process_is_found_from_the_rows(parrot):
    run = say(parrot)
    node = run.nodes.get(node_id="say")
    RunNode.objects.filter(pk=node.pk).update(
        evaluated_at=None, eval_passed=None, eval_score=None, eval_results=None
    )
    executors.announce_unfinished()
    node.refresh_from_db()
    assert (node.eval_passed, node.eval_score) == (True, 1.0)


@pytest.mark.storage
def test_verdict_of_a_run_cancelled_while_a_node_was_graded_counts_that_node(parrot, monkeypatch):
    graded = evals.grade

    def grade_slowly(node, baseline):
        if node.node_id == "say":
            services.cancel_run(Run.objects.get(pk=node.run_id))
        return graded(node, baseline)

    monkeypatch.setattr(evals, "grade", grade_slowly)
    run = say(parrot, "no")
    assert run.status == RunStatus.CANCELLED
    assert run.nodes.get(node_id="say").eval_passed is False
    assert (run.eval_score, run.eval_passed) == (0.75, False)
    assert not Observation.objects.exists()


@pytest.mark.storage
def test_run_whose_end_nobody_acted_on_is_found_from_the_rows(parrot, monkeypatch):
    monkeypatch.setattr(EvalObserver, "on_run_finished", lambda *_, **__: None)
    observers = list(run_finished.receivers)
    run_finished.receivers.clear()
    run_finished.sender_receivers_cache.clear()
    run = say(parrot)
    run_finished.receivers.extend(observers)
    run_finished.sender_receivers_cache.clear()
    assert not Observation.objects.exists()
    executors.announce_unfinished()
    executors.announce_unfinished()
    assert Observation.objects.filter(run=run).count() == 2


@pytest.mark.storage
def test_first_run_has_no_delta_and_the_second_has(parrot):
    assert say(parrot, "yes").nodes.get(node_id="say").delta is None
    delta = say(parrot, "no").nodes.get(node_id="say").delta
    assert delta["score_delta"] == -0.25
    assert (delta["baseline_score"], delta["baseline_run_count"]) == (1.0, 1)
    assert (delta["low"], delta["high"]) == (None, None), "no interval before twenty runs"


@pytest.mark.storage
@pytest.mark.parametrize(
    "options",
    [{"environment": Environment.SIMULATION}, {"source": Source.EVAL}],
    ids=["simulation", "eval"],
)
def test_runs_that_are_not_production_feed_no_baseline(parrot, options):
    run = say(parrot, **options)
    assert run.observed_at is not None
    assert not Observation.objects.exists()


@pytest.mark.storage
def test_observations_are_numbered_per_block_and_rebuild_gives_what_was_kept(parrot):
    for text in ("yes", "no", "yes yes yes yes", "yes"):
        say(parrot, text)
    assert list(Observation.objects.filter(node_id="say").values_list("number", "passed")) == [
        (1, True), (2, False), (3, False), (4, True),
    ]  # fmt: skip
    fields = ("node_id", "count", "baseline", "verdicts", "slices", "state")
    kept = list(BlockStatistics.objects.order_by("node_id").values(*fields))
    BlockStatistics.objects.update(count=0, baseline={}, verdicts={}, slices={}, state={})
    assert rebuild_statistics(parrot) == 8
    assert list(BlockStatistics.objects.order_by("node_id").values(*fields)) == kept


def as_lists(state):
    """What was stored before the numbers became one text."""
    for metric in state["metrics"].values():
        metric["values"] = unpacked(metric["values"])


def with_fewer_tests(state):
    for metric in state["metrics"].values():
        metric["legs"].pop()


@pytest.mark.storage
@pytest.mark.parametrize(
    "change",
    [
        as_lists,
        with_fewer_tests,
        lambda state: state["metrics"]["latency"].pop("roughness"),
        lambda state: state.update(format=0),
    ],
    ids=["lists", "fewer tests", "no roughness", "other format"],
)
def test_state_of_another_version_is_made_again_when_the_next_run_ends(parrot, change):
    for text in ("yes", "no", "yes"):
        say(parrot, text)
    for row in BlockStatistics.objects.all():
        change(row.state)
        row.save()
    report = {"external_id": "new", "status": "completed", "nodes": [{"node_id": "say", "output": "yes"}]}
    assert Report({"workflow": "parrot", **report}, None).store().is_new
    assert say(parrot, "yes").observed_at is not None
    fields = ("node_id", "count", "baseline", "verdicts", "slices", "state")
    kept = list(BlockStatistics.objects.order_by("node_id").values(*fields))
    assert [row["count"] for row in kept] == [4, 5]
    rebuild_statistics(parrot)
    assert list(BlockStatistics.objects.order_by("node_id").values(*fields)) == kept


@pytest.mark.storage
def test_statistics_survive_the_pruning_of_their_runs(parrot):
    for _ in range(3):
        say(parrot)
    kept = BlockStatistics.objects.get(node_id="say").state
    Run.objects.all().delete()
    rebuild_statistics(parrot)
    assert BlockStatistics.objects.get(node_id="say").state == kept
    assert Observation.objects.filter(run=None).count() == 6


@pytest.mark.storage
def test_pinned_run_is_what_later_nodes_compare_with(parrot):
    say(parrot, "yes")
    bad = say(parrot, "no")
    actions.pin_baseline(parrot, run=bad)
    delta = say(parrot, "yes").nodes.get(node_id="say").delta
    assert (delta["baseline_score"], delta["score_delta"]) == (0.75, 0.25)
    actions.pin_baseline(parrot)
    assert say(parrot, "yes").nodes.get(node_id="say").delta["baseline_run_count"] == 3


def test_secrets_are_gone_before_assertions_look(parrot):
    run = say(parrot, "yes sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    node = run.nodes.get(node_id="say")
    assert "abcdefghij" not in node.output and "[redacted]" in node.output
    assert "abcdefghij" not in str(list(run.events.values_list("data", flat=True)))


@pytest.mark.storage
def test_saving_the_same_text_makes_no_new_version(parrot):
    again = services.save_version("parrot", PARROT)
    assert again.number == 1
    assert services.save_version("parrot", PARROT + "\n").number == 2


@pytest.mark.storage
def test_evaluation_that_was_rolled_back_is_not_taken_for_one(parrot, monkeypatch):
    append, refusals = events.append, iter([True])

    def refuse_once(run, seq, event, **data):
        if event == EventName.NODE_EVAL_COMPLETE and next(refusals, False):
            raise OperationalError("the disk is full")
        return append(run, seq, event, **data)

    monkeypatch.setattr(events, "append", refuse_once)
    run = services.start_run(parrot, {"text": "yes"})
    executors.service().execute(run.pk)
    assert not run.nodes.filter(node_id="bare").exists()  # given back instead
    executors.service().execute(run.pk)
    history = list(run.events.values_list("event", "data__node_id"))
    assert history.index(("node_eval_complete", "say")) < history.index(("node_started", "bare"))
    assert Observation.objects.get(run=run, node_id="say").score == 1.0


@pytest.mark.storage
def test_statistics_of_more_versions_and_assertions_than_are_kept_equal_a_rebuild(transactional_db):
    many = "".join(f"      - {{type: contains, value: 'a{n}'}}\n" for n in range(70))
    workflow = make_workflow(
        PARROT.replace("      - {type: word-count, value: {max: 3}, weight: 3}\n", many), "many"
    )
    for number in range(75):
        nodes = [{"node_id": "say", "output": "a1", "soul_version": f"v{number * 11 % 70}"}]
        Report(
            {"workflow": "many", "external_id": str(number), "status": "completed", "nodes": nodes}
        ).store()
    row = BlockStatistics.objects.get(node_id="say")
    assert len(row.slices["soul_version"]) == 60
    assert {one["count"] for one in row.slices["assertion"].values()} == {75}
    assert len(row.slices["assertion"]) == 71
    rebuild_statistics(workflow)
    assert BlockStatistics.objects.get(node_id="say").slices == row.slices
