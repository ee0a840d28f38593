"""Where a soul of the library is used: read from the current versions, so it is never out of date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from workflows_app.engine.definition import souls_of
from workflows_app.models import Workflow

MOST_WORKFLOWS = 200  # whose documents are searched for many souls at once, the latest changed first


@dataclass(frozen=True)
class Use:
    """One workflow that asks a soul, and in which blocks."""

    workflow: Workflow
    blocks: tuple[str, ...]


def uses_of(slug: str) -> list[Use]:
    """Every workflow whose current version names the soul and does not bring one of that name itself."""
    return _uses({slug}, Workflow.objects.filter(current_version__yaml__contains=slug).order_by("slug"))[slug]


def uses_by_soul(slugs: Iterable[str]) -> dict[str, list[Use]]:
    """The same for several souls in one query, among the `MOST_WORKFLOWS` changed last."""
    rows = Workflow.objects.exclude(current_version=None).order_by("-updated_at")
    return _uses(set(slugs), rows[:MOST_WORKFLOWS])


def _uses(slugs: set[str], workflows: QuerySet[Workflow]) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {slug: [] for slug in slugs}
    for workflow in workflows.select_related("current_version"):
        if definition := workflow.readable_definition:
            for slug in slugs & (definition.soul_refs - definition.souls.keys()):
                blocks = (block.id for block in definition.blocks.values() if slug in souls_of(block))
                found[slug].append(Use(workflow, tuple(blocks)))
    return found
