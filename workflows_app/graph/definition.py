"""A definition as the blocks and ways of a picture."""

from collections.abc import Callable
from dataclasses import replace

from workflows_app.engine.definition import BaseBlockDef, WorkflowDefinition
from workflows_app.engine.graph import Graph, Link
from workflows_app.graph.layout import GraphEdge, GraphNode

Dress = Callable[[GraphNode], GraphNode]


def definition_graph(
    definition: WorkflowDefinition, dress: Dress | None = None
) -> tuple[list[GraphNode], list[GraphEdge]]:
    """The blocks and edges of a definition; `dress` adds to a block what a page knows of it."""
    graph = Graph(definition)
    nodes = [_node(block, graph) for block in definition.blocks.values()]
    links = [link for block_id in definition.blocks for link in graph.outgoing[block_id]]
    edges = dict.fromkeys(_edge(link) for link in links)
    return ([dress(node) for node in nodes] if dress else nodes), list(edges)


def _node(block: BaseBlockDef, graph: Graph) -> GraphNode:
    return GraphNode(block.id, block.type, parent=graph.loops.get(block.id))


def _edge(link: Link) -> GraphEdge:
    edge = GraphEdge(link.edge.source, link.edge.target)
    if link.edge.is_error:
        return replace(edge, label="on error", kind="error")
    if link.edge.exit is not None:
        return replace(edge, label=link.edge.exit, kind="route")
    return edge
