"""A workflow document as the evaluation of its cases needs it: the definition, and the line of everything in it."""

from __future__ import annotations

from dataclasses import dataclass

from evals_app.assertions import validate_assertions
from workflows_app.engine.definition import InvalidDocument, WorkflowDefinition
from workflows_app.engine.parse import KeyPath, ParsedDocument, parse
from workflows_app.engine.validate import validate


@dataclass(frozen=True)
class Document:
    """A valid workflow document."""

    definition: WorkflowDefinition
    parsed: ParsedDocument
    name: str = ""
    path: str | None = None

    def line(self, *at: str | int) -> int | None:
        """The line of what is written there, or of the nearest thing above it."""
        place: KeyPath = at
        return self.parsed.line(place)


def read_document(text: str | bytes, *, name: str = "", path: str | None = None) -> Document:
    """Parse and validate a text by itself, no library asked; `InvalidDocument` with every fault."""
    parsed = parse(text)
    definition, faults = validate(parsed, check_assertions=validate_assertions)
    if definition is None:
        raise InvalidDocument(faults)
    return Document(definition, parsed, definition.slug or name or definition.name, path)
