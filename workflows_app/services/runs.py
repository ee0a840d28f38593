"""Starting, stopping and repeating runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F

from workflows_app import clock, events
from workflows_app.engine.definition import InvalidDocument, SoulDef, WorkflowBlockDef, WorkflowDefinition
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.inputs import check_inputs
from workflows_app.models import (
    ACTIVE,
    TERMINAL,
    Environment,
    NodeStatus,
    Run,
    RunNode,
    RunStatus,
    Soul,
    Source,
    Workflow,
    WorkflowVersion,
)
from workflows_app.services.checkpoints import end_run, finish_run
from workflows_app.services.leases import Lease, claim
from workflows_app.signals import run_cancelled, run_ready
from workflows_app.storage import totals
from workflows_app.storage.statements import update_returning

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class Refused(Exception):
    """A request that cannot be carried out now; the message gives the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def start_run(
    workflow: Workflow,
    inputs: Mapping[str, Any] | None = None,
    *,
    version: WorkflowVersion | None = None,
    source: str = Source.MANUAL,
    environment: str = Environment.PRODUCTION,
    user: AbstractBaseUser | None = None,
    rerun_of: Run | None = None,
) -> Run:
    """Write a pending run; once it is committed the executor takes it."""
    with transaction.atomic():
        run = _create_run(
            workflow,
            inputs,
            version,
            source=source,
            environment=environment,
            started_by_id=user.pk if user else None,
            rerun_of=rerun_of,
        )
        transaction.on_commit(lambda: run_ready.send_robust(sender=Run, run_id=run.pk), robust=True)
    return run


@transaction.atomic
def start_held_run(workflow: Workflow, inputs: Mapping[str, Any] | None = None, **fields: Any) -> Lease:
    """Write a run that this process executes itself and nobody else may take."""
    run = _create_run(workflow, inputs, None, **fields)
    lease = claim(run.pk)
    assert lease is not None, "nobody else can see the run yet"
    return lease


def _create_run(
    workflow: Workflow, inputs: Mapping[str, Any] | None, version: WorkflowVersion | None, **fields: Any
) -> Run:
    try:
        version = version or workflow.current_version
    except WorkflowVersion.DoesNotExist:
        raise _deleted(workflow) from None
    if version is None:
        raise Refused("no_version", f"{workflow.slug} has no saved version to run.")
    if not workflow.enabled:
        raise Refused("disabled", f"{workflow.slug} is disabled; enable it to run it.")
    values, errors = check_inputs(version.definition, dict(inputs or {}))
    if errors:
        raise InvalidDocument(errors)
    return _write_run(workflow, version, values, **fields)


def _write_run(workflow: Workflow, version: WorkflowVersion, inputs: Mapping[str, Any], **fields: Any) -> Run:
    run = Run.objects.create(
        workflow=workflow,
        version=version,
        number=next_run_number(workflow),
        inputs=inputs,
        resolved=resolve(version.definition),
        created_at=clock.shared_now(),
        **fields,
    )
    totals.run_changed(run)
    return run


def start_child(parent: Lease, node: RunNode, workflow_slug: str, inputs: Mapping[str, Any]) -> Lease:
    """The child run of a node, owned by whoever owns the parent; a child that was interrupted goes on."""
    with transaction.atomic():
        events.advance(parent.run, fence=parent.fence, count=0)  # nobody resumes what a former owner starts
        child = _interrupted_child(parent, node) or _create_child(parent, workflow_slug, inputs)
        Run.objects.filter(pk=child.pk).exclude(status__in=TERMINAL).update(
            status=RunStatus.RUNNING,
            owner=parent.run.owner,
            fence=F("fence") + 1,
            lease_expires_at=Run.objects.filter(pk=parent.run.pk).values("lease_expires_at"),
        )
        RunNode.objects.filter(pk=node.pk).update(child_run=child)
    child.refresh_from_db()
    node.child_run = child
    return Lease(child, child.fence)


def _interrupted_child(parent: Lease, node: RunNode) -> Run | None:
    return (
        Run.objects.filter(
            parent_nodes__run=parent.run,
            parent_nodes__node_id=node.node_id,
            parent_nodes__iteration=node.iteration,
            parent_nodes__error__type="interrupted",
        )
        .select_related("workflow", "version__workflow")
        .order_by("-created_at")
        .first()
    )


def _create_child(parent: Lease, workflow_slug: str, inputs: Mapping[str, Any]) -> Run:
    versions: dict[str, int] = parent.run.resolved.get("children", {})
    try:
        workflow = Workflow.objects.get(slug=workflow_slug)
        version = workflow.versions.select_related("workflow").get(number=versions[workflow_slug])
    except (Workflow.DoesNotExist, WorkflowVersion.DoesNotExist, KeyError):
        message = f"There is no workflow {workflow_slug!r} to run."
        raise BlockFailure("unknown_workflow", message) from None
    values, errors = check_inputs(version.definition, dict(inputs))
    if errors:
        raise BlockFailure("bad_inputs", "; ".join(map(str, errors)))
    return _write_run(
        workflow,
        version,
        values,
        source=parent.run.source,
        environment=parent.run.environment,
        started_by_id=parent.run.started_by_id,
        parent_run=parent.run,
        depth=parent.run.depth + 1,
    )


def next_run_number(workflow: Workflow) -> int:
    """Take the next number of a workflow; the row stays locked until the run is committed."""
    row = update_returning(workflow, ["last_run_number"], add={"last_run_number": 1})
    if row is None:
        raise _deleted(workflow)
    return int(row[0])


def _deleted(workflow: Workflow) -> Refused:
    return Refused("conflict", f"{workflow.slug} was deleted.")


def resolve(definition: WorkflowDefinition) -> dict[str, Any]:
    """The souls and child versions that a run keeps to its end, whatever is edited meanwhile."""
    wanted = definition.soul_refs
    souls = {slug: asdict(definition.souls[slug]) for slug in wanted if slug in definition.souls}
    library = wanted - souls.keys()
    if library:
        souls |= {soul.slug: asdict(soul.definition) for soul in Soul.objects.filter(slug__in=library)}
    refs = {block.workflow_ref for block in definition.blocks.values() if isinstance(block, WorkflowBlockDef)}
    children: dict[str, int] = {}
    if refs:
        found = Workflow.objects.filter(slug__in=refs).values_list("slug", "current_version__number")
        children = {slug: number for slug, number in found if number}
    return {"souls": souls, "children": children}


def resolved_souls(run: Run) -> dict[str, SoulDef]:
    """The souls a run resolved when it started."""
    return {ref: SoulDef(**fields) for ref, fields in run.resolved.get("souls", {}).items()}


@transaction.atomic
def cancel_run(run: Run) -> Run:
    """Stop a run and its children. Immediate in the rows; its executor notices within a second."""
    cancelled = Run.objects.filter(pk=run.pk, status__in=ACTIVE).update(
        fence=F("fence") + 1, lease_expires_at=None
    )
    if not cancelled:
        raise Refused("conflict", f"Run #{run.number} is already {Run.objects.get(pk=run.pk).status}.")
    run = Run.objects.select_related("workflow", "version__workflow").get(pk=run.pk)
    _stop_inside(run)
    end_run(run, RunStatus.CANCELLED)
    transaction.on_commit(lambda: run_cancelled.send_robust(sender=Run, run_id=run.pk), robust=True)
    return run


def _stop_inside(run: Run) -> None:
    """Cancel the open nodes and the child runs."""
    run.nodes.filter(status__in=(NodeStatus.PENDING, NodeStatus.RUNNING)).update(
        status=NodeStatus.CANCELLED, finished_at=clock.now()
    )
    for child in run.children.active():
        cancel_run(child)


@transaction.atomic
def fail_run(lease: Lease, kind: str, message: str) -> None:
    """End a run that cannot go on, with everything still open in it."""
    events.advance(lease.run, fence=lease.fence, count=0)  # the run before its nodes, as everywhere
    _stop_inside(lease.run)
    finish_run(lease, RunStatus.FAILED, error={"type": kind, "message": message})


def rerun(run: Run, user: AbstractBaseUser | None = None, source: str = Source.MANUAL) -> Run:
    """Start the same version with the same inputs again."""
    return start_run(
        run.workflow,
        run.inputs,
        version=run.version,
        source=source,
        environment=run.environment,
        user=user,
        rerun_of=run,
    )
