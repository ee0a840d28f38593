"""A workflow as a picture: blocks in layers, edges between them."""

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
    "graph_svg",
    "layout",
]
