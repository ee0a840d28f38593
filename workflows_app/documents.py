"""Between the engine's parser and the tables: which document is valid here, and its parsed form."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workflows_app.engine.definition import Fault, InvalidDocument, SoulDef, WorkflowDefinition, souls_of
from workflows_app.engine.providers.prices import has_price
from workflows_app.engine.validate import compile_document

KEPT_DEFINITIONS = 512

# evals_app plugs its validator in from AppConfig.ready(); this app must not import it.
_check_assertions: Callable[[list[Any]], Iterable[Any]] | None = None
_kept: OrderedDict[str, WorkflowDefinition] = OrderedDict()
_lock = threading.Lock()


def use_assertion_checker(check: Callable[[list[Any]], Iterable[Any]]) -> None:
    """Plug in what finds faults in a block's assertions."""
    global _check_assertions
    _check_assertions = check


def check_document(text: str) -> tuple[WorkflowDefinition | None, list[Fault]]:
    """Parse and validate a text against this installation's souls, workflows and prices."""
    from workflows_app.models import Soul, Workflow

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
    return (None, faults) if faults else (definition, [])


def _caps_without_price(definition: WorkflowDefinition, souls: Mapping[str, SoulDef]) -> Iterator[Fault]:
    """A cap on cost that cannot be kept, because nobody knows what the model costs."""
    from workflows_app.credentials import price_overrides

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


def check_document_for(slug: str, text: str) -> tuple[WorkflowDefinition | None, list[Fault]]:
    """Parse and validate a text that is to be saved under a slug."""
    definition, faults = check_document(text)
    if definition is not None and definition.slug not in (None, slug):
        message = f"The document calls itself {definition.slug!r}, but is saved as {slug!r}."
        return None, [Fault("id", None, message)]
    return definition, faults


def definition_of(sha256: str, text: str) -> WorkflowDefinition:
    """The definition of a text that was valid when it was saved."""
    with _lock:
        if sha256 in _kept:
            _kept.move_to_end(sha256)
            return _kept[sha256]
    definition = compile_document(text)
    with _lock:
        _kept[sha256] = definition
        while len(_kept) > KEPT_DEFINITIONS:
            _kept.popitem(last=False)
    return definition
