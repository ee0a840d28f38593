"""Runs that happened elsewhere: checked, graded and observed like our own, all or nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from evals_app.monitoring.baselines import baselines_of
from evals_app.services import evaluation
from evals_app.services.observation import counts_as_normal, observe
from evals_app.services.report_checks import faults_of
from workflows_app import clock, events
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.engine.graph import Graph
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.values.context import RunContext
from workflows_app.engine.values.outputs import output_text, storable
from workflows_app.models import (
    Environment,
    EventName,
    NodeStatus,
    Run,
    RunEvent,
    RunNode,
    RunStatus,
    Source,
    Workflow,
    WorkflowVersion,
)
from workflows_app.security.credentials import redactor
from workflows_app.services.checkpoints import (
    END_EVENT,
    joint_verdict,
    node_facts,
    result_facts,
    run_facts,
)
from workflows_app.services.runs import next_run_number
from workflows_app.signals import run_finished
from workflows_app.storage import totals
from workflows_app.storage.statements import insert_many

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# A thousand nodes take a second; only patterns that run into their own limit get here.
GRADING_SECONDS = 30.0

Entry = tuple[EventName, datetime, dict[str, Any]]  # of a run's history, not numbered yet


@dataclass(frozen=True)
class Ingested:
    """A run from elsewhere, its nodes, and whether this call made it."""

    run: Run
    nodes: Sequence[RunNode]
    is_new: bool


class Report:
    """A run that was executed elsewhere, or an eval case: checked and graded, but not stored yet.

    Making one may take a while, and raises InvalidDocument with every error.
    """

    def __init__(
        self, report: Mapping[str, Any], user: AbstractBaseUser | None = None, *, source: str = Source.INGEST
    ) -> None:
        report = storable(dict(report))
        self.external_id: str = report["external_id"]
        self.version = _version_of(report)
        self.earlier = _earlier(self.version.workflow, self.external_id)
        if self.earlier is not None:
            return
        faults = list(faults_of(report, self.version.definition))
        if faults:
            raise InvalidDocument(faults)
        self.run = _run(report, self.version, user, source)
        self.nodes = list(_nodes(report["nodes"], self.run))
        _grade(self.nodes, self.run)
        _sum_up(self.run, self.nodes)

    def store(self) -> Ingested:
        """Write it; the same `external_id` again returns the same run, also when both come at once."""
        if self.earlier is not None:
            return _stored_before(self.earlier)
        try:
            _write(self.run, self.nodes)
        except IntegrityError:
            earlier = _earlier(self.version.workflow, self.external_id)
            if earlier is None:
                raise
            return _stored_before(earlier)
        return Ingested(self.run, self.nodes, True)


def _stored_before(run: Run) -> Ingested:
    return Ingested(run, list(run.nodes.defer("output", "prompt", "details").order_by("pk")), False)


def _version_of(report: Mapping[str, Any]) -> WorkflowVersion:
    workflow = Workflow.objects.select_related("current_version").filter(slug=report["workflow"]).first()
    if workflow is None:
        raise InvalidDocument([Fault("workflow", None, f"There is no workflow {report['workflow']!r}.")])
    number = report.get("version")
    version = workflow.versions.filter(number=number).first() if number else workflow.current_version
    if version is None:
        message = f"{workflow.slug} has no version{f' {number}' if number else ''}."
        raise InvalidDocument([Fault("version", None, message)])
    version.workflow = workflow
    return version


def _earlier(workflow: Workflow, external_id: str) -> Run | None:
    same = Run.objects.filter(workflow=workflow, external_id=external_id).order_by()
    return same.select_related("workflow", "version").first()


# From report to rows


def _run(
    report: Mapping[str, Any], version: WorkflowVersion, user: AbstractBaseUser | None, source: str
) -> Run:
    now = clock.now()
    moments = (node.get(name) for node in report["nodes"] for name in ("started_at", "finished_at"))
    known = sorted(moment for moment in moments if moment)
    started = report.get("started_at") or (known[0] if known else None)
    finished = report.get("finished_at") or (known[-1] if known else now)
    duration_ms = (finished - started).total_seconds() * 1000 if started else None
    return Run(
        workflow=version.workflow,
        version=version,
        status=report["status"],
        source=source,
        environment=report.get("environment", Environment.PRODUCTION),
        inputs=redactor().redact_json(report.get("inputs", {})),
        external_id=report["external_id"],
        started_by_id=user.pk if user else None,
        created_at=min(started or finished, now),
        started_at=started,
        finished_at=finished,
        duration_ms=max(duration_ms, 0.0) if duration_ms is not None else None,
        error=_run_error(report),
    )


def _run_error(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Why a failed run failed: the error of its last failed node."""
    if report["status"] != RunStatus.FAILED:
        return None
    failed = [node for node in report["nodes"] if node.get("error") is not None]
    if not failed:
        return {"type": "external", "message": "It failed where it was executed; no reason was sent."}
    error = _error(failed[-1]["error"])
    return {"type": error["type"], "message": f"{failed[-1]['node_id']}: {error['message']}"}


def _nodes(reported: Iterable[Mapping[str, Any]], run: Run) -> Iterator[RunNode]:
    redact = redactor().redact
    blocks = run.version.definition.blocks
    counts: Counter[str] = Counter()
    for one in reported:
        node_id = one["node_id"]
        counts[node_id] += 1
        error = one.get("error")
        yield RunNode(
            run=run,
            node_id=node_id,
            block_type=blocks[node_id.partition(".")[0]].type,
            iteration=one.get("iteration") or counts[node_id],
            attempt=1,
            status=NodeStatus.COMPLETED if error is None else NodeStatus.FAILED,
            output=redact(output_text(one.get("output"))),
            cost_usd=one.get("cost_usd"),
            tokens=_tokens(one.get("tokens")),
            latency_ms=_latency(one),
            soul_id=one.get("soul_id", ""),
            soul_version=one.get("soul_version", ""),
            error=_error(error) if error is not None else None,
            started_at=one.get("started_at"),
            finished_at=one.get("finished_at") or run.finished_at,
        )


def _error(error: Any) -> dict[str, Any]:
    redact = redactor().redact
    if isinstance(error, str):
        error = {"message": error}
    kind, message = error.get("type", "external"), error.get("message", "")
    return {"type": redact(str(kind)), "message": redact(str(message))}


def _tokens(tokens: Mapping[str, int] | None) -> dict[str, int] | None:
    if not tokens:
        return None
    completion = tokens.get("completion", 0)
    prompt = tokens.get("prompt", max(tokens.get("total", 0) - completion, 0))
    return {"prompt": prompt, "completion": completion, "total": tokens.get("total", prompt + completion)}


def _latency(node: Mapping[str, Any]) -> float | None:
    if node.get("latency_ms") is not None:
        return float(node["latency_ms"])
    started, finished = node.get("started_at"), node.get("finished_at")
    return (finished - started).total_seconds() * 1000 if started and finished else None


# Grading, before anything is written


def _grade(nodes: list[RunNode], run: Run) -> None:
    """Fill the eval fields of every finished node: assertions first, then the distance from its baseline."""
    baselines = baselines_of(run.workflow_id, {node.node_id for node in nodes})
    moment = clock.now()
    deadline = time.monotonic() + GRADING_SECONDS
    for index, node in enumerate(nodes):
        if time.monotonic() > deadline:
            message = f"evaluating the nodes before this one took {GRADING_SECONDS:.0f} seconds; send fewer in one call."
            raise InvalidDocument([Fault(f"nodes[{index}]", None, message)])
        if node.status == NodeStatus.COMPLETED:
            fields = evaluation.grade(node, baselines.get(node.node_id))
            for name, value in (fields | {"evaluated_at": moment}).items():
                setattr(node, name, value)


def _sum_up(run: Run, nodes: list[RunNode]) -> None:
    """The run's totals, verdict and outputs, from its nodes."""
    done = _completed(nodes)
    costs = [node.cost_usd for node in done if node.cost_usd is not None]
    run.cost_usd = sum(costs) if costs else None
    run.prompt_tokens = sum(node.tokens["prompt"] for node in done if node.tokens)
    run.completion_tokens = sum(node.tokens["completion"] for node in done if node.tokens)
    run.nodes_done = len(done)
    for node in done:
        for name, count in evaluation.count_verdicts(node.eval_results).items():
            setattr(run, name, getattr(run, name) + count)
    run.eval_score, run.eval_passed = joint_verdict(
        (node.node_id, node.eval_score, node.eval_passed) for node in done
    )
    run.outputs = _outputs(run, done) if run.status == RunStatus.COMPLETED else None


def _completed(nodes: list[RunNode]) -> list[RunNode]:
    """The nodes that count, by iteration."""
    done = [node for node in nodes if node.status == NodeStatus.COMPLETED]
    return sorted(done, key=lambda node: node.iteration)


def _outputs(run: Run, nodes: list[RunNode]) -> dict[str, Any]:
    definition = run.version.definition
    context = RunContext(definition, Graph(definition), run.inputs, {"id": str(run.pk)})
    context.records = {
        node.node_id: NodeRecord(node_id=node.node_id, iteration=node.iteration, output=node.output)
        for node in nodes
    }
    outputs: dict[str, Any] = redactor().redact_json(context.outputs())
    return outputs


# Writing


@transaction.atomic
def _write(run: Run, nodes: list[RunNode]) -> None:
    insert_many(nodes)
    history = _history(run, nodes)
    insert_many(history, needs_keys=False)
    run.last_seq = len(history)
    run.observed_at = clock.now()
    # Only from here on do runs of one workflow wait for each other, so everything else comes before.
    run.number = next_run_number(run.workflow)
    run.save(force_insert=True)
    totals.run_changed(run)
    if counts_as_normal(run):
        observe(run, _completed(nodes))
    # One message is enough: a viewer who sees a gap reads the rows.
    transaction.on_commit(
        lambda: events.publish(history[-1], run.workflow.slug, run.workflow_id), robust=True
    )
    transaction.on_commit(lambda: run_finished.send_robust(sender=Run, run=run), robust=True)


def _history(run: Run, nodes: list[RunNode]) -> list[RunEvent]:
    """The events our own executor would have written."""
    start, end = run.started_at or run.created_at, run.finished_at or run.created_at
    nothing_yet = dict.fromkeys(run_facts(run))
    entries: list[Entry] = [
        (EventName.RUN_STARTED, start, {"status": RunStatus.RUNNING, **nothing_yet}),
        *(entry for node in nodes for entry in _node_history(node, start, end)),
        (END_EVENT[RunStatus(run.status)], end, {"status": run.status, **run_facts(run)}),
    ]
    return [
        RunEvent(run_id=run.pk, seq=seq, event=event, at=at, data=data)
        for seq, (event, at, data) in enumerate(entries, start=1)
    ]


def _node_history(node: RunNode, start: datetime, end: datetime) -> Iterator[Entry]:
    facts = node_facts(node)
    finished = node.finished_at or end
    yield EventName.NODE_STARTED, node.started_at or start, {**facts, "block_type": node.block_type}
    if node.status == NodeStatus.FAILED:
        yield EventName.NODE_FAILED, finished, {**facts, "error": node.error, "will_retry": False}
        return
    yield EventName.NODE_COMPLETED, finished, result_facts(node)
    if node.eval_results is not None:
        yield EventName.NODE_EVAL_COMPLETE, finished, evaluation.eval_event(node, vars(node))
