"""Where a soul of the library is used: read from the current versions, so it is never out of date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workflows_app.engine.definition import DispatchBlockDef, GateBlockDef, LlmBlockDef, WorkflowDefinition
from workflows_app.models import Workflow

MOST_WORKFLOWS = 200  # whose documents are searched for many souls at once, the latest changed first


@dataclass(frozen=True)
class Use:
    """One workflow that asks a soul, and in which blocks."""

    workflow: Workflow
    blocks: tuple[str, ...]


def uses_of(slug: str) -> list[Use]:
    """Every workflow whose current version names the soul and does not bring one of that name itself."""
    rows = Workflow.objects.filter(current_version__yaml__contains=slug).select_related("current_version")
    found = []
    for workflow in rows.order_by("slug"):
        assert workflow.current_version is not None
        definition = workflow.current_version.readable_definition
        if definition and slug in definition.soul_refs and slug not in definition.souls:
            found.append(Use(workflow, _blocks(definition, slug)))
    return found


def uses_by_soul(slugs: Iterable[str]) -> dict[str, list[Use]]:
    """The same for several souls in one query, among the `MOST_WORKFLOWS` changed last."""
    wanted = set(slugs)
    found: dict[str, list[Use]] = {slug: [] for slug in wanted}
    rows = Workflow.objects.exclude(current_version=None).select_related("current_version")
    for workflow in rows.order_by("-updated_at")[:MOST_WORKFLOWS]:
        assert workflow.current_version is not None
        definition = workflow.current_version.readable_definition
        if definition:
            for slug in wanted & (definition.soul_refs - definition.souls.keys()):
                found[slug].append(Use(workflow, _blocks(definition, slug)))
    return found


def _blocks(definition: WorkflowDefinition, slug: str) -> tuple[str, ...]:
    return tuple(
        block.id
        for block in definition.blocks.values()
        if (isinstance(block, (LlmBlockDef, GateBlockDef)) and block.soul_ref == slug)
        or (isinstance(block, DispatchBlockDef) and any(branch.soul_ref == slug for branch in block.branches))
    )
