"""What this installation lends to executed eval cases, read beforehand: their event loop may touch no table."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from evals_app.cases.surroundings import Surroundings
from workflows_app import credentials
from workflows_app.engine.definition import SoulDef, WorkflowBlockDef, WorkflowDefinition
from workflows_app.engine.providers import Provider, ProviderSettings, make_provider
from workflows_app.models import Workflow
from workflows_app.services import resolve


def surroundings_of(definition: WorkflowDefinition) -> Surroundings:
    """This installation's providers, prices, souls and child workflows."""
    accesses = credentials.provider_accesses()

    def provider(name: str) -> Provider:
        access = accesses.get(name)
        if access is None:
            return make_provider(name)
        return make_provider(
            access.kind,
            ProviderSettings(
                base_url=access.base_url,
                api_key=access.key,
                allow_private=settings.RUNSIGHT_ALLOW_PRIVATE_PROVIDERS,
            ),
        )

    children = dict(_children(definition))
    souls: dict[str, SoulDef] = {}
    for one in (definition, *children.values()):
        library = {ref: SoulDef(**fields) for ref, fields in resolve(one)["souls"].items()}
        souls |= {ref: soul for ref, soul in library.items() if ref not in one.souls}
    return Surroundings(
        make_provider=provider,
        find_workflow=children.get,
        souls=souls,
        price_overrides=credentials.price_overrides(),
    )


def _children(definition: WorkflowDefinition) -> Iterator[tuple[str, WorkflowDefinition]]:
    """Every workflow that may run inside this one."""
    seen: set[str] = set()
    waiting = [definition]
    while waiting:
        one = waiting.pop()
        refs = {b.workflow_ref for b in one.blocks.values() if isinstance(b, WorkflowBlockDef)} - seen
        seen |= refs
        for workflow in Workflow.objects.filter(slug__in=refs).select_related("current_version"):
            if workflow.current_version is not None:
                waiting.append(workflow.current_version.definition)
                yield workflow.slug, workflow.current_version.definition
