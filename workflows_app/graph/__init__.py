"""A workflow as a picture: blocks in layers, edges between them."""

from collections.abc import Callable

from django.utils.safestring import SafeString

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.graph.definition import definition_graph
from workflows_app.graph.draw import graph_svg
from workflows_app.graph.layout import GraphEdge, GraphNode, Layout, PlacedNode, RoutedEdge, layout

__all__ = [
    "GraphEdge",
    "GraphNode",
    "Layout",
    "PlacedNode",
    "RoutedEdge",
    "definition_graph",
    "drawing_of",
    "graph_svg",
    "layout",
]

MOST_UNASKED = 24  # blocks in a graph that nobody asked for
UNASKED_BYTES = 10_000  # of it: a heavier one weighs as much as the rest of its page


def drawing_of(
    definition: WorkflowDefinition,
    dress: Callable[[GraphNode], GraphNode],
    *,
    is_asked: bool,
    title: str = "Workflow graph",
) -> SafeString:
    """A definition's graph, each block dressed by the caller; empty where it is heavy and nobody asked for it."""
    if not is_asked and len(definition.blocks) > MOST_UNASKED:
        return SafeString("")
    drawing = graph_svg(layout(*definition_graph(definition, dress)), title=title)
    return drawing if is_asked or len(drawing) <= UNASKED_BYTES else SafeString("")
