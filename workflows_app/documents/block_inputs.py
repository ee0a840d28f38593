"""The values a block started with, looked up again from the rows of its run."""

from __future__ import annotations

from typing import Any

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.engine.graph import Graph
from workflows_app.engine.records import NodeRecord
from workflows_app.engine.values.context import RunContext, UnknownPath
from workflows_app.models import NodeStatus, Run, RunNode
from workflows_app.security.credentials import shown_inputs

FIELDS = ("node_id", "status", "output", "exit_handle", "error")
MOST_VALUES = 19  # each may be a megabyte


def inputs_of(run: Run, node: RunNode, definition: WorkflowDefinition) -> dict[str, Any]:
    """Values by the names the block knew them under: its own `inputs`, else the run's and the outputs that led to it.

    Two queries. What only that moment knew, such as the round of a loop or what it carried on, is shown as its path.
    """
    block = definition.blocks.get(node.node_id)
    if block is None:
        return {}
    graph = Graph(definition)
    about = {"id": str(run.pk), "number": run.number, "version": run.version.number}
    context = RunContext(definition, graph, shown_inputs(run), about)
    values: dict[str, Any] = {}
    if block.inputs is not None:
        paths = dict(list(block.inputs.items())[:MOST_VALUES])
    else:
        values["inputs"] = dict(context.inputs)
        paths = {source: f"blocks.{source}.output" for source in graph.sources(node.node_id)[:MOST_VALUES]}
    canonical = {}
    for name, path in paths.items():
        values[name] = f"{{{{ {path} }}}}"
        try:
            canonical[name] = context.canonical(path)
        except UnknownPath:
            continue
    context.records.update(
        _records(run, node, {parts[1] for parts in canonical.values() if parts[0] == "blocks"})
    )
    for name, parts in canonical.items():
        try:
            values[name] = context.lookup(parts, definition.blocks)
        except UnknownPath:
            continue
    return values


def _records(run: Run, node: RunNode, blocks: set[str]) -> dict[str, NodeRecord]:
    """The latest result of each block when this node began."""
    rows = run.nodes.filter(node_id__in=blocks, status__in=(NodeStatus.COMPLETED, NodeStatus.FAILED))
    if node.started_at:
        rows = rows.filter(finished_at__lte=node.started_at)
    # First which of many rounds and attempts, then their outputs: each may be a megabyte.
    latest = dict(rows.order_by("iteration", "attempt").values_list("node_id", "pk"))
    found = run.nodes.filter(pk__in=latest.values()).values(*FIELDS)
    return {row["node_id"]: NodeRecord(**row) for row in found}
