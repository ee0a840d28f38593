"""What must be true after any fault, read from the rows alone."""

from collections import Counter
from collections.abc import Iterable

from evals_app.models import BlockStatistics, Observation
from evals_app.services.observation import counts_as_normal, last_rounds, rebuild_statistics
from workflows_app.models import NodeStatus, Run, Workflow

ONCE_A_NODE = ("node_completed", "node_eval_complete")


def violations(runs: Iterable[Run], longest_seconds: float) -> list[str]:
    """Every broken promise, in words; empty when all were kept."""
    found: list[str] = []
    workflows = set()
    for run in runs:
        run.refresh_from_db()
        found += [f"{run}: {problem}" for problem in (*_of_run(run), *_of_times(run, longest_seconds))]
        workflows.add(run.workflow_id)
    for workflow in Workflow.objects.filter(pk__in=workflows):
        if not _statistics_equal_a_rebuild(workflow):
            found.append(f"{workflow.slug}: statistics differ from a rebuild")
    return found


def _of_run(run: Run) -> Iterable[str]:
    if not run.is_terminal or run.observed_at is None:
        yield f"is {run.status}, observed {run.observed_at}"
        return
    events = list(run.events.values_list("seq", "event", "data"))
    if [seq for seq, _, _ in events] != list(range(1, run.last_seq + 1)):
        yield f"events are not gapless: {[seq for seq, _, _ in events]} of {run.last_seq}"
    counts = Counter((event, data["node"]) for _, event, data in events if event in ONCE_A_NODE)
    yield from (
        f"{event} of node {node} {times} times" for (event, node), times in counts.items() if times != 1
    )
    if sum(event == f"run_{run.status}" for _, event, _ in events) != 1:
        yield f"run_{run.status} was not recorded exactly once"
    finished = [node for node in run.nodes.all() if node.status == NodeStatus.COMPLETED]
    done = Counter((node.node_id, node.iteration) for node in finished)
    yield from (f"{key} finished {times} times" for key, times in done.items() if times != 1)
    for node in finished:
        if node.evaluated_at is None:
            yield f"{node.node_id} was never evaluated"
        if counts["node_completed", node.pk] != 1:
            yield f"{node.node_id} finished without an event"
        if (node.eval_results is not None) != (counts["node_eval_complete", node.pk] == 1):
            yield f"{node.node_id} was evaluated without an event"
    observed = Counter(Observation.objects.filter(run=run).values_list("node_id", flat=True))
    wanted = Counter(last_rounds(finished).keys()) if counts_as_normal(run) else Counter()
    if observed != wanted:
        yield f"observations {observed} instead of {wanted}"


def _of_times(run: Run, longest_seconds: float) -> Iterable[str]:
    if run.duration_ms is not None and not 0 <= run.duration_ms <= longest_seconds * 1000:
        yield f"took {run.duration_ms:.0f} ms"
    if run.finished_at and run.started_at and not run.created_at <= run.started_at <= run.finished_at:
        yield f"was made {run.created_at}, began {run.started_at} and ended {run.finished_at}"


def _statistics_equal_a_rebuild(workflow: Workflow) -> bool:
    fields = ("node_id", "count", "state", "slices", "baseline", "verdicts")
    rows = BlockStatistics.objects.filter(workflow=workflow).order_by("node_id")
    kept = list(rows.values_list(*fields))
    rebuild_statistics(workflow)
    return kept == list(rows.values_list(*fields))
