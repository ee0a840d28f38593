"""Runs that happened elsewhere: checked, graded and observed like our own, all or nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from evals_app import services
from evals_app.baselines import Measured, delta_of
from evals_app.models import BlockStatistics
from evals_app.plans import plan_for
from evals_app.report_faults import faults_of
from workflows_app import clock, events, rows, totals
from workflows_app.credentials import redactor
from workflows_app.engine.context import RunContext
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.engine.graph import Graph
from workflows_app.engine.outputs import output_text, storable
from workflows_app.engine.records import NodeRecord
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
from workflows_app.services import next_run_number, node_facts
from workflows_app.services.checkpoints import END_EVENT, PREVIEW_CHARACTERS, joint_verdict, run_facts
from workflows_app.signals import run_finished

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# A thousand nodes take a second; only patterns that run into their own limit get here.
GRADING_SECONDS = 30.0


@dataclass(frozen=True)
class Ingested:
    """A run from elsewhere, its nodes, and whether this call made it."""

    run: Run
    nodes: Sequence[RunNode]
    is_new: bool


def ingest(
    report: Mapping[str, Any], user: AbstractBaseUser | None = None, *, source: str = Source.INGEST
) -> Ingested:
    """Store a run that was executed elsewhere; raises InvalidDocument with every fault.

    The same `external_id` again gives the same run, also when both come at once. Eval cases come in here, too.
    """
    return Report(report, user, source=source).store()


class Report:
    """A report that was checked and graded, which may take a while, and is not stored yet."""

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
        self.nodes = _nodes(report["nodes"], self.run)
        _grade(self.nodes, self.run)
        _sum_up(self.run, self.nodes)

    def store(self) -> Ingested:
        """Write it, or find that it was there already."""
        if self.earlier is not None:
            return _as_it_was(self.earlier)
        try:
            _write(self.run, self.nodes)
        except IntegrityError:
            earlier = _earlier(self.version.workflow, self.external_id)
            if earlier is None:
                raise
            return _as_it_was(earlier)
        return Ingested(self.run, self.nodes, True)


def _as_it_was(run: Run) -> Ingested:
    return Ingested(run, list(run.nodes.defer("output", "prompt", "details").order_by("pk")), False)


def _version_of(report: Mapping[str, Any]) -> WorkflowVersion:
    workflow = Workflow.objects.select_related("current_version").filter(slug=report["workflow"]).first()
    if workflow is None:
        raise InvalidDocument([Fault("workflow", None, f"There is no workflow {report['workflow']!r}.")])
    number = report.get("version")
    version = workflow.versions.filter(number=number).first() if number else workflow.current_version
    if version is None:
        message = (
            f"{workflow.slug} has no version {number}." if number else f"{workflow.slug} has no version."
        )
        raise InvalidDocument([Fault("version", None, message)])
    version.workflow = workflow
    return version


def _earlier(workflow: Workflow, external_id: str) -> Run | None:
    same = Run.objects.filter(workflow=workflow, external_id=external_id).order_by()
    if not same.exists():
        return None
    return same.select_related("workflow", "version").get()


# From report to rows


def _run(
    report: Mapping[str, Any], version: WorkflowVersion, user: AbstractBaseUser | None, source: str
) -> Run:
    now = clock.now()
    moments = [
        moment for node in report["nodes"] for moment in (node.get("started_at"), node.get("finished_at"))
    ]
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
    """Why a failed run failed: what its last failed node says."""
    if report["status"] != RunStatus.FAILED:
        return None
    failed = [node for node in report["nodes"] if node.get("error") is not None]
    if not failed:
        return {"type": "external", "message": "It failed where it was executed; no reason was sent."}
    error = _error(failed[-1]["error"])
    return {"type": error["type"], "message": f"{failed[-1]['node_id']}: {error['message']}"}


def _nodes(reported: Iterable[Mapping[str, Any]], run: Run) -> list[RunNode]:
    redact = redactor().redact
    blocks = run.version.definition.blocks
    counts: Counter[str] = Counter()
    nodes = []
    for one in reported:
        node_id = one["node_id"]
        counts[node_id] += 1
        error = one.get("error")
        nodes.append(
            RunNode(
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
        )
    return nodes


def _error(error: Any) -> dict[str, Any]:
    redact = redactor().redact
    if isinstance(error, str):
        return {"type": "external", "message": redact(error)}
    return {
        "type": redact(str(error.get("type", "external"))),
        "message": redact(str(error.get("message", ""))),
    }


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
    blocks = BlockStatistics.objects.filter(
        workflow_id=run.workflow_id, node_id__in={node.node_id for node in nodes}
    )
    baselines = {
        name: pinned or found for name, pinned, found in blocks.values_list("node_id", "pinned", "baseline")
    }
    moment = clock.now()
    deadline = time.monotonic() + GRADING_SECONDS
    for index, node in enumerate(nodes):
        if time.monotonic() > deadline:
            message = f"evaluating the nodes before this one took {GRADING_SECONDS:.0f} seconds; send fewer in one call."
            raise InvalidDocument([Fault(f"nodes[{index}]", None, message)])
        if node.status == NodeStatus.COMPLETED:
            fields = services.grade(node, plan_for(run.version, node.node_id))
            measured = Measured.of(node, fields["eval_score"])
            for name, value in fields.items():
                setattr(node, name, value)
            node.delta = delta_of(measured, baselines.get(node.node_id))
            node.evaluated_at = moment


def _sum_up(run: Run, nodes: list[RunNode]) -> None:
    """The run's totals, verdict and outputs, from its nodes."""
    done = [node for node in nodes if node.status == NodeStatus.COMPLETED]
    costs = [node.cost_usd for node in done if node.cost_usd is not None]
    run.cost_usd = sum(costs) if costs else None
    run.prompt_tokens = sum(node.tokens["prompt"] for node in done if node.tokens)
    run.completion_tokens = sum(node.tokens["completion"] for node in done if node.tokens)
    run.nodes_done = len(done)
    for node in done:
        for name, count in services.tally(node.eval_results).items():
            setattr(run, name, getattr(run, name) + count)
    in_order = sorted(done, key=lambda node: node.iteration)
    run.eval_score, run.eval_passed = joint_verdict(
        (node.node_id, node.eval_score, node.eval_passed) for node in in_order
    )
    run.outputs = _outputs(run, in_order) if run.status == RunStatus.COMPLETED else None


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
    rows.insert_many(nodes)
    told = _History(run).of(nodes)
    rows.add_many(told)
    run.last_seq = len(told)
    run.observed_at = clock.now()
    # Only from here on do runs of one workflow wait for each other, so everything else comes before.
    run.number = next_run_number(run.workflow)
    run.save(force_insert=True)
    totals.run_changed(run)
    if services.counts_as_normal(run):
        done = [node for node in nodes if node.status == NodeStatus.COMPLETED]
        services.observe(run, sorted(done, key=lambda node: node.iteration))
    # One nudge is enough: a viewer who sees a gap reads the rows.
    transaction.on_commit(lambda: events.publish(told[-1], run.workflow.slug, run.workflow_id), robust=True)
    transaction.on_commit(lambda: run_finished.send_robust(sender=Run, run=run), robust=True)


@dataclass
class _History:
    """The events our own executor would have written."""

    run: Run
    seq: int = 0

    def of(self, nodes: list[RunNode]) -> list[RunEvent]:
        run = self.run
        start, end = run.started_at or run.created_at, run.finished_at or run.created_at
        nothing_yet = dict.fromkeys(run_facts(run))
        told = [self._row(EventName.RUN_STARTED, start, {"status": RunStatus.RUNNING, **nothing_yet})]
        for node in nodes:
            told.extend(self._of_node(node, start, end))
        facts = {"status": run.status, **run_facts(run)}
        return [*told, self._row(END_EVENT[RunStatus(run.status)], end, facts)]

    def _of_node(self, node: RunNode, start: datetime, end: datetime) -> Iterator[RunEvent]:
        facts = node_facts(node)
        finished = node.finished_at or end
        yield self._row(
            EventName.NODE_STARTED, node.started_at or start, {**facts, "block_type": node.block_type}
        )
        if node.status == NodeStatus.FAILED:
            yield self._row(
                EventName.NODE_FAILED, finished, {**facts, "error": node.error, "will_retry": False}
            )
            return
        told = {
            "latency_ms": node.latency_ms,
            "cost_usd": node.cost_usd,
            "tokens": node.tokens,
            "exit_handle": None,
            "preview": node.output[:PREVIEW_CHARACTERS],
        }
        yield self._row(EventName.NODE_COMPLETED, finished, {**facts, **told})
        if node.eval_results is not None:
            graded = {
                "eval_score": node.eval_score,
                "eval_passed": node.eval_passed,
                "eval_results": node.eval_results,
                "delta": node.delta,
            }
            yield self._row(EventName.NODE_EVAL_COMPLETE, finished, services.eval_event(node, graded))

    def _row(self, event: EventName, at: datetime, data: dict[str, Any]) -> RunEvent:
        self.seq += 1
        return RunEvent(run_id=self.run.pk, seq=self.seq, event=event, data=data, at=at)
