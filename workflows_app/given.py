"""What a block was given, looked up again from the rows of its run."""

from __future__ import annotations

from typing import Any

from workflows_app.credentials import shown_inputs
from workflows_app.engine.context import RunContext, UnknownPath
from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.engine.graph import Graph
from workflows_app.engine.records import NodeRecord
from workflows_app.models import NodeStatus, Run, RunNode

FIELDS = ("run_id", "node_id", "status", "output", "exit_handle", "error")

MOST_GIVEN = 19  # and the inputs


def given_to(run: Run, node: RunNode, definition: WorkflowDefinition) -> dict[str, Any]:
    """Values by the names the block knew them under: its own `inputs`, else the run's and the outputs that led to it.

    Two queries. What only the moment knew, such as the round of a loop or what it carried on, is told by its path.
    """
    block = definition.blocks.get(node.node_id)
    if block is None:
        return {}
    graph = Graph(definition)
    about = {"id": str(run.pk), "number": run.number, "version": run.version.number}
    context = RunContext(definition, graph, shown_inputs(run), about)
    if block.inputs is not None:
        paths = dict(list(block.inputs.items())[:MOST_GIVEN])
    else:
        sources = graph.sources(node.node_id)[:MOST_GIVEN]
        paths = {"inputs": "", **{source: f"blocks.{source}.output" for source in sources}}
    context.records.update(_records(run, node, context, paths.values()))
    return {name: _value(context, path, definition) for name, path in paths.items()}


def _value(context: RunContext, path: str, definition: WorkflowDefinition) -> Any:
    if not path:
        return dict(context.inputs)
    try:
        return context.lookup(context.canonical(path), definition.blocks)
    except UnknownPath:
        return f"{{{{ {path} }}}}"


def _records(run: Run, node: RunNode, context: RunContext, paths: Any) -> dict[str, NodeRecord]:
    """The latest result, when this node began, of each block that a path names."""
    wanted = set()
    for path in filter(None, paths):
        try:
            parts = context.canonical(path)
        except UnknownPath:
            continue
        if parts[0] == "blocks":
            wanted.add(parts[1])
    rows = run.nodes.filter(node_id__in=wanted, status__in=(NodeStatus.COMPLETED, NodeStatus.FAILED))
    if node.started_at:
        rows = rows.filter(finished_at__lte=node.started_at)
    # First which of many rounds and attempts, then their outputs: each may be a megabyte.
    latest = dict(rows.order_by("iteration", "attempt").values_list("node_id", "pk"))
    return {
        row.node_id: NodeRecord(
            node_id=row.node_id,
            status=row.status,
            output=row.output,
            exit_handle=row.exit_handle,
            error=row.error,
        )
        for row in run.nodes.filter(pk__in=latest.values()).only(*FIELDS)
    }
