"""Make the definition out of checked values; nothing here can fail on a document without faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .block_keys import BLOCK_KEYS
from .definition import (
    BLOCK_DEFS,
    BaseBlockDef,
    CarryContext,
    Condition,
    ConditionGroup,
    DispatchExit,
    Edge,
    EvalCase,
    EvalSuite,
    EvidenceSettings,
    ExitCase,
    InputField,
    Limits,
    OutputField,
    RetryConfig,
    SoulDef,
    WorkflowDefinition,
)
from .parse import ParsedDocument
from .paths import canonical, parse_path
from .validate_blocks import Draft
from .validate_references import judged_block, own_parts

_SOUL_KEYS = frozenset(SoulDef.__dataclass_fields__)


def build_definition(
    document: ParsedDocument, values: Mapping[str, Any], drafts: dict[str, Draft], edges: tuple[Edge, ...]
) -> WorkflowDefinition:
    """The definition of a document without faults."""
    workflow = values.get("workflow", {})
    slug = values.get("id")
    interface = values.get("interface", {})
    limits = values.get("limits")
    return WorkflowDefinition(
        name=workflow.get("name") or slug or "",
        slug=slug,
        blocks={name: _block(draft, drafts, document) for name, draft in drafts.items()},
        edges=edges,
        entry=workflow.get("entry"),
        enabled=values.get("enabled", True),
        souls={name: _soul(name, soul) for name, soul in values.get("souls", {}).items()},
        inputs=tuple(map(_input, interface["inputs"])) if "inputs" in interface else None,
        outputs=tuple(_output(field, drafts) for field in interface.get("outputs", ())),
        limits=Limits(**limits) if limits is not None else None,
        eval=_suite(values["eval"], document) if "eval" in values else None,
        evidence=EvidenceSettings(**values.get("evidence", {})),
        config=values.get("config", {}),
    )


def _soul(name: str, values: Mapping[str, Any]) -> SoulDef:
    return SoulDef(**{"id": name} | {key: value for key, value in values.items() if key in _SOUL_KEYS})


def _input(values: Mapping[str, Any]) -> InputField:
    known = {key: value for key, value in values.items() if key != "target"}
    return InputField(**known, has_default="default" in values)


def _output(values: Mapping[str, Any], drafts: Mapping[str, Draft]) -> OutputField:
    source = ".".join(canonical(parse_path(values["source"]), drafts))
    return OutputField(name=values["name"], source=source, type=values.get("type", "any"))


def _suite(values: Mapping[str, Any], document: ParsedDocument) -> EvalSuite:
    cases = tuple(
        EvalCase(**case, line=document.line(("eval", "cases", index)) or 0)
        for index, case in enumerate(values.get("cases", ()))
    )
    return EvalSuite(threshold=values.get("threshold", 1.0), cases=cases)


def _block(draft: Draft, drafts: dict[str, Draft], document: ParsedDocument) -> BaseBlockDef:
    kind = str(draft.kind)
    known = BLOCK_KEYS[kind]
    found: dict[str, Any] = {}
    for key, value in draft.values.items():
        if key == "type":
            continue
        build = _BUILDERS.get((kind, key)) or _BUILDERS.get(("", key))
        attribute = (known[key].attribute if key in known else "") or key
        found[attribute] = build(value, draft, drafts) if build else value
    return BLOCK_DEFS[kind](id=draft.id, line=document.line(draft.at) or 0, **found)


def _path(text: str, draft: Draft, drafts: dict[str, Draft], key: str) -> str:
    """A path's canonical spelling; carried context and locals stay as they are."""
    parts = own_parts(parse_path(text), draft, drafts, (*draft.at, key))
    return ".".join(canonical(parts, drafts, (parts[0],)))


def _condition(
    value: Condition | ConditionGroup, draft: Draft, drafts: dict[str, Draft], key: str
) -> Condition | ConditionGroup:
    if isinstance(value, ConditionGroup):
        inner = tuple(_condition(part, draft, drafts, key) for part in value.conditions)
        return ConditionGroup(combinator=value.combinator, conditions=inner)
    eval_key = _path(value.eval_key, draft, drafts, key)
    return Condition(eval_key=eval_key, operator=value.operator, value=value.value)


def _cases(key: str) -> Callable[..., tuple[ExitCase, ...]]:
    def build(value: Any, draft: Draft, drafts: dict[str, Draft]) -> tuple[ExitCase, ...]:
        return tuple(
            ExitCase(
                exit=case["exit"],
                when=_condition(case["when"], draft, drafts, key) if "when" in case else None,
                default=case.get("default", False),
                goto=case.get("goto"),
            )
            for case in value
        )

    return build


def _eval_key(value: str, _draft: Draft, drafts: dict[str, Draft]) -> str:
    return judged_block(parse_path(value), drafts) or value


_BUILDERS: dict[tuple[str, str], Callable[[Any, Draft, dict[str, Draft]], Any]] = {
    ("", "inputs"): lambda value, draft, drafts: {
        name: _path(source["from"], draft, drafts, "inputs") for name, source in value.items()
    },
    ("", "retry_config"): lambda value, *_: RetryConfig(**value),
    ("", "limits"): lambda value, *_: Limits(**value),
    ("", "exits"): lambda value, *_: tuple(exit_["id"] for exit_ in value),
    ("", "exit_conditions"): _cases("exit_conditions"),
    ("", "routes"): _cases("routes"),
    ("gate", "eval_key"): _eval_key,
    ("loop", "break_condition"): lambda value, draft, drafts: _condition(
        value, draft, drafts, "break_condition"
    ),
    ("loop", "carry_context"): lambda value, *_: CarryContext(**value),
    ("dispatch", "exits"): lambda value, *_: tuple(DispatchExit(**branch) for branch in value),
}
