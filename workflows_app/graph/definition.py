"""A definition as a picture."""

from collections.abc import Callable, Collection

from django.utils.safestring import SafeString

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.engine.graph import Graph, Link
from workflows_app.graph.draw import graph_svg
from workflows_app.graph.layout import GraphEdge, GraphNode, layout

Decorate = Callable[[GraphNode], GraphNode]

MOST_UNASKED = 50  # blocks; a larger graph is drawn when somebody asks for it


def drawing_of(
    definition: WorkflowDefinition,
    decorate: Decorate = lambda node: node,
    *,
    is_asked: bool,
    title: str = "Workflow graph",
    only: Collection[str] | None = None,
) -> SafeString:
    """A definition's graph, each block decorated by the caller; empty where it is large and nobody asked for it."""
    if not is_asked and len(definition.blocks) > MOST_UNASKED:
        return SafeString("")
    return graph_svg(layout(*definition_graph(definition, decorate)), title=title, only=only)


def definition_graph(
    definition: WorkflowDefinition, decorate: Decorate = lambda node: node
) -> tuple[list[GraphNode], list[GraphEdge]]:
    """The blocks and edges of a definition; `decorate` adds to a block what a page knows of it."""
    graph = Graph(definition)
    nodes = [
        decorate(GraphNode(block.id, block.type, parent=graph.loops.get(block.id)))
        for block in definition.blocks.values()
    ]
    edges = dict.fromkeys(_edge(link) for block in definition.blocks for link in graph.outgoing[block])
    return nodes, list(edges)


def _edge(link: Link) -> GraphEdge:
    edge = link.edge
    if edge.is_error:
        return GraphEdge(edge.source, edge.target, label="on error", kind="error")
    if edge.exit is not None:
        return GraphEdge(edge.source, edge.target, label=edge.exit, kind="route")
    return GraphEdge(edge.source, edge.target)
