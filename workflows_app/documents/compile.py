"""Between the engine's parser and the tables: which document is valid here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workflows_app.engine.definition import Fault, InvalidDocument, SoulDef, WorkflowDefinition, souls_of
from workflows_app.engine.providers.prices import has_price
from workflows_app.engine.slugs import slug_error
from workflows_app.engine.validate import compile_document
from workflows_app.models import Soul, Workflow
from workflows_app.security.credentials import price_overrides

# evals_app plugs its validator in from AppConfig.ready(); this app must not import it.
_check_assertions: Callable[[list[Any]], Iterable[Any]] | None = None


def use_assertion_checker(check: Callable[[list[Any]], Iterable[Any]]) -> None:
    """Plug in what finds errors in a block's assertions."""
    global _check_assertions
    _check_assertions = check


def check_document(text: str, slug: str = "") -> tuple[WorkflowDefinition | None, list[Fault]]:
    """Compile a text against this installation's souls, workflows and prices, as the workflow of a slug if named."""
    library = {soul.slug: soul.definition for soul in Soul.objects.all()}
    try:
        definition = compile_document(
            text,
            check_assertions=_check_assertions,
            known_souls=library.keys(),
            known_workflows=set(Workflow.objects.values_list("slug", flat=True)),
        )
    except InvalidDocument as invalid:
        return None, invalid.faults
    faults = list(_caps_without_price(definition, {**library, **definition.souls}))
    if slug and not faults:
        faults = slug_errors(slug, definition)
    return (None, faults) if faults else (definition, [])


def valid_document(text: str, slug: str) -> WorkflowDefinition:
    """What a text for a slug defines; raises InvalidDocument with every error."""
    definition, faults = check_document(text, slug)
    if definition is None:
        raise InvalidDocument(faults)
    return definition


def slug_errors(slug: str, definition: WorkflowDefinition) -> list[Fault]:
    """Why a document cannot be saved under a slug; only a new workflow is held to the rule of slugs."""
    if (problem := slug_error(slug)) and not Workflow.objects.filter(slug=slug).exists():
        return [Fault("id", None, problem)]
    if definition.slug not in (None, slug):
        return [
            Fault("id", None, f"The document calls itself {definition.slug!r}, but is saved as {slug!r}.")
        ]
    return []


def _caps_without_price(definition: WorkflowDefinition, souls: Mapping[str, SoulDef]) -> Iterator[Fault]:
    """A cap on cost that cannot be kept, because nobody knows what the model costs."""
    for block in definition.blocks.values():
        capped_by = next(
            (limits for limits in (block.limits, definition.limits) if limits and limits.cost_cap_usd), None
        )
        for ref in souls_of(block) if capped_by else ():
            model = souls[ref].model_name
            if not has_price(model, overrides=price_overrides()):
                yield Fault(
                    f"blocks.{block.id}.{'limits' if block.limits is capped_by else 'soul_ref'}",
                    block.line,
                    f"the cost cap cannot be kept: model {model!r} of soul {ref!r} has no price. "
                    "Add a price override, or cap tokens instead.",
                )
