"""Make the definition out of checked values; nothing here can fail on a document without errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from workflows_app.engine import definition
from workflows_app.engine.parse import ParsedDocument
from workflows_app.engine.schema.block_keys import BLOCK_SHAPES
from workflows_app.engine.validate.blocks import Draft
from workflows_app.engine.validate.references import gated_block, own_parts
from workflows_app.engine.values.paths import canonical, parse_path

_SOUL_KEYS = definition.SoulDef.__dataclass_fields__.keys()

Condition = definition.Condition | definition.ConditionGroup


def build_definition(
    document: ParsedDocument,
    values: Mapping[str, Any],
    drafts: dict[str, Draft],
    edges: tuple[definition.Edge, ...],
) -> definition.WorkflowDefinition:
    """The definition of a document without errors."""
    workflow = values.get("workflow", {})
    slug = values.get("id")
    interface = values.get("interface", {})
    limits = values.get("limits")
    return definition.WorkflowDefinition(
        name=workflow.get("name") or slug or "",
        slug=slug,
        blocks={name: _block(draft, drafts, document) for name, draft in drafts.items()},
        edges=edges,
        entry=workflow.get("entry"),
        enabled=values.get("enabled", True),
        souls={
            name: definition.SoulDef(**{"id": name} | {key: soul[key] for key in _SOUL_KEYS & soul.keys()})
            for name, soul in values.get("souls", {}).items()
        },
        inputs=tuple(map(_input, interface["inputs"])) if "inputs" in interface else None,
        outputs=tuple(_output(field, drafts) for field in interface.get("outputs", ())),
        limits=definition.Limits(**limits) if limits is not None else None,
        eval=_suite(values["eval"], document) if "eval" in values else None,
        evidence=definition.EvidenceSettings(**values.get("evidence", {})),
        config=values.get("config", {}),
    )


def _input(values: Mapping[str, Any]) -> definition.InputField:
    known = {key: value for key, value in values.items() if key != "target"}
    return definition.InputField(**known, has_default="default" in values)


def _output(values: Mapping[str, Any], drafts: Mapping[str, Draft]) -> definition.OutputField:
    source = ".".join(canonical(parse_path(values["source"]), drafts))
    return definition.OutputField(name=values["name"], source=source, type=values.get("type", "any"))


def _suite(values: Mapping[str, Any], document: ParsedDocument) -> definition.EvalSuite:
    cases = tuple(
        definition.EvalCase(**case, line=document.line(("eval", "cases", index)) or 0)
        for index, case in enumerate(values.get("cases", ()))
    )
    return definition.EvalSuite(threshold=values.get("threshold", 1.0), cases=cases)


def _block(draft: Draft, drafts: dict[str, Draft], document: ParsedDocument) -> definition.BaseBlockDef:
    kind = str(draft.kind)
    found: dict[str, Any] = {}
    for key, value in draft.values.items():
        if key != "type":
            attribute = BLOCK_SHAPES[kind].keys[key].attribute or key
            build = _BUILDERS.get(attribute)
            found[attribute] = build(value, partial(_path, draft, drafts, key)) if build else value
    return definition.BLOCK_DEFS[kind](id=draft.id, line=document.line(draft.at) or 0, **found)


def _path(draft: Draft, drafts: dict[str, Draft], key: str, text: str) -> str:
    """A path's canonical spelling; carried context and locals stay as they are, and a gate's is a block's id."""
    parts = parse_path(text)
    if key == "eval_key":
        return gated_block(parts, drafts) or text
    parts = own_parts(parts, draft, drafts, key)
    return ".".join(canonical(parts, drafts, (parts[0],)))


def _condition(value: Condition, path: Callable[[str], str]) -> Condition:
    if isinstance(value, definition.ConditionGroup):
        return replace(value, conditions=tuple(_condition(part, path) for part in value.conditions))
    return replace(value, eval_key=path(value.eval_key))


def _cases(value: Any, path: Callable[[str], str]) -> tuple[definition.ExitCase, ...]:
    cases = (definition.ExitCase(**case) for case in value)
    return tuple(replace(case, when=_condition(case.when, path)) if case.when else case for case in cases)


# By the attribute of the definition.
_BUILDERS: dict[str, Callable[[Any, Callable[[str], str]], Any]] = {
    "inputs": lambda value, path: {name: path(source["from"]) for name, source in value.items()},
    "retry_config": lambda value, _: definition.RetryConfig(**value),
    "limits": lambda value, _: definition.Limits(**value),
    "exits": lambda value, _: tuple(exit_["id"] for exit_ in value),
    "exit_conditions": _cases,
    "routes": _cases,
    "eval_key": lambda value, path: path(value),
    "break_condition": _condition,
    "carry_context": lambda value, _: definition.CarryContext(**value),
    "branches": lambda value, _: tuple(definition.DispatchExit(**branch) for branch in value),
}
