"""A workflow document as eval cases need it: the definition, and the line of everything in it."""

from __future__ import annotations

from dataclasses import dataclass

from evals_app.assertions import validate_assertions
from workflows_app.engine.definition import EvalCase, InvalidDocument, WorkflowDefinition
from workflows_app.engine.parse import ParsedDocument, parse
from workflows_app.engine.validate import validate


@dataclass(frozen=True)
class Document:
    """A valid workflow document."""

    definition: WorkflowDefinition
    parsed: ParsedDocument
    name: str = ""
    path: str | None = None


def cases_in(definition: WorkflowDefinition) -> tuple[EvalCase, ...]:
    """The eval cases of a document."""
    return definition.eval.cases if definition.eval else ()


def read_document(text: str | bytes, *, name: str = "", path: str | None = None) -> Document:
    """Parse and validate a text by itself, without the soul library; `InvalidDocument` with every error."""
    parsed = parse(text)
    definition, faults = validate(parsed, check_assertions=validate_assertions)
    if definition is None:
        raise InvalidDocument(faults)
    return Document(definition, parsed, definition.slug or name or definition.name, path)
