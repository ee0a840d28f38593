"""Check a whole document in one pass: a definition, or every error with its path and line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypedDict, Unpack

from workflows_app.engine.definition import CarryContext, Fault, InvalidDocument, WorkflowDefinition
from workflows_app.engine.parse import MAX_FAULTS, KeyPath, ParsedDocument, format_path, parse
from workflows_app.engine.schema.document_keys import DOCUMENT
from workflows_app.engine.schema.kinds import PATH, Checker, TooManyFaults
from workflows_app.engine.schema.shapes import placed
from workflows_app.engine.validate.blocks import (
    CheckAssertions,
    Draft,
    check_assertions_of,
    check_code_of,
    check_unique,
    read_blocks,
)
from workflows_app.engine.validate.build import build_definition
from workflows_app.engine.validate.graph import DraftGraph
from workflows_app.engine.validate.references import References
from workflows_app.engine.values.inputs import type_problem
from workflows_app.engine.values.outputs import written_inputs
from workflows_app.engine.values.paths import INPUT_ROOTS, suggestion

__all__ = ["compile_document", "validate"]


class Library(TypedDict, total=False):
    """What the caller knows and this module must not import: what is None or left out is not asked."""

    check_assertions: CheckAssertions | None
    known_souls: Collection[str] | None
    known_workflows: Collection[str] | None


def compile_document(text: str | bytes, **library: Unpack[Library]) -> WorkflowDefinition:
    """The definition a text describes, or InvalidDocument with all its errors."""
    definition, faults = validate(parse(text), **library)
    if definition is None:
        raise InvalidDocument(faults)
    return definition


def validate(
    document: ParsedDocument, **library: Unpack[Library]
) -> tuple[WorkflowDefinition | None, list[Fault]]:
    """The definition of a parsed document, or every error in it, in the order of lines."""
    if not document.is_whole:
        return None, _ordered(document.faults)
    to = Checker()
    try:
        values, drafts, graph = _check(document, to, library)
    except TooManyFaults:
        last = Fault("", None, f"more than {MAX_FAULTS} errors; the rest was not looked at")
        return None, [*_ordered([_located(document, *fault) for fault in to.faults]), last]
    faults = [*document.faults, *(_located(document, *fault) for fault in to.faults)]
    if faults:
        return None, _ordered(faults)
    return build_definition(document, values, drafts, graph.edges), []


def _check(
    document: ParsedDocument, to: Checker, library: Library
) -> tuple[dict[str, Any], dict[str, Draft], DraftGraph]:
    """Check everything: each block by itself, then the graph, then what names what."""
    values = DOCUMENT.check_keys(document.value, (), to)
    drafts = read_blocks(values["blocks"], to) if "blocks" in values else {}
    graph = DraftGraph(drafts, values.get("workflow", {}), to)
    inline = document.value.get("souls")  # with those that have errors
    souls = library.get("known_souls")
    if souls is not None and isinstance(inline, dict):
        souls = {*souls, *inline}
    inputs = _known_inputs(values, drafts)
    workflows = library.get("known_workflows")
    References(drafts, graph, to, souls=souls, workflows=workflows, inputs=inputs).check()
    _check_sections(values, drafts, to)
    for configs, at in _assertions(values, drafts):
        check_assertions_of(configs, at, to, library.get("check_assertions"))
    return values, drafts, graph


def _located(document: ParsedDocument, at: KeyPath, message: str, line_in_text: int | None) -> Fault:
    line = document.line(at) if line_in_text is None else document.text_line(at, line_in_text)
    spelling = document.spelling(at) if at and "must be" in message else None
    if spelling is not None:
        message += f" (unquoted, {spelling} is a word for {str(document.get(at)).lower()} in YAML)"
    return Fault(format_path(at), line, message)


def _ordered(faults: list[Fault]) -> list[Fault]:
    """Errors by line, each once."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.path))


def _known_inputs(values: Mapping[str, Any], drafts: Mapping[str, Draft]) -> dict[str, str | None] | None:
    """The inputs that can be named, with the block that puts one there later; None: the run takes anything."""
    interface = values.get("interface", {})
    if "inputs" not in interface:
        return None
    names: dict[str, str | None] = {
        name: draft.id
        for draft in drafts.values()
        if draft.kind == "workflow"
        for name in written_inputs(draft.get("outputs", ()))
    }
    return names | {field["name"]: None for field in interface["inputs"]}


def _assertions(values: Mapping[str, Any], drafts: Mapping[str, Draft]) -> list[tuple[list[Any], KeyPath]]:
    """Every list of assertions, with its place."""
    found: list[tuple[list[Any], KeyPath]] = [
        (draft.values["assertions"], (*draft.at, "assertions"))
        for draft in drafts.values()
        if "assertions" in draft.values
    ]
    for index, case in placed(values.get("eval", {}).get("cases", ())):
        found += [
            (configs, ("eval", "cases", index, "expected", block))
            for block, configs in case.get("expected", {}).items()
        ]
    return found


def _check_sections(values: Mapping[str, Any], drafts: Mapping[str, Draft], to: Checker) -> None:
    for name, soul in values.get("souls", {}).items():
        if soul.get("id", name) != name:
            to.report(
                ("souls", name, "id"), f"is '{soul['id']}', but the soul's key is '{name}'; they must agree"
            )
    for draft in drafts.values():
        if draft.kind == "workflow":
            for target in draft.get("outputs", {}):
                if problem := PATH.problem(target):
                    to.report((*draft.at, "outputs", target), problem)
        elif draft.kind == "loop":
            _check_loop(draft, drafts, to)
        elif draft.kind == "code":
            check_code_of(draft, to)
    _check_interface(values.get("interface", {}), to)
    _check_cases(values, to)


def _check_loop(draft: Draft, drafts: Mapping[str, Draft], to: Checker) -> None:
    inner = [drafts[name].exits for name in draft.get("inner_block_refs", ()) if name in drafts]
    exits = {name for one in inner for name in one or ()}
    for key in ("break_on_exit", "retry_on_exit"):
        wanted = draft.get(key, "")
        if wanted and None not in inner and wanted not in exits:
            hint = suggestion(wanted, sorted(exits), "they have")
            to.report((*draft.at, key), f"no inner block has an exit '{wanted}'{hint}")
    carry = draft.get("carry_context", {})
    name = carry.get("inject_as", CarryContext.inject_as) if carry else None
    if name in drafts:
        at = (*draft.at, "carry_context", "inject_as")
        to.report(at, f"'{name}' is the id of a block; choose another name")
    for index, source in placed(carry.get("source_blocks", ())):
        if source in drafts and source not in draft.get("inner_block_refs", ()):
            to.report(
                (*draft.at, "carry_context", "source_blocks", index), f"'{source}' is not inside this loop"
            )


def _check_interface(interface: Mapping[str, Any], to: Checker) -> None:
    for key in ("inputs", "outputs"):
        check_unique(interface.get(key, ()), ("interface", key), "name", to)
    for index, field in placed(interface.get("inputs", ())):
        at = ("interface", "inputs", index)
        if "default" in field and (problem := type_problem(field["default"], field.get("type", "any"))):
            to.report((*at, "default"), problem)
        root, _, name = field.get("target", f"inputs.{field['name']}").strip().partition(".")
        if root not in INPUT_ROOTS or name != field["name"]:
            to.report((*at, "target"), f"must be inputs.{field['name']}; other targets are not supported")


def _check_cases(values: Mapping[str, Any], to: Checker) -> None:
    interface, cases = values.get("interface", {}), values.get("eval", {}).get("cases", ())
    check_unique(cases, ("eval", "cases"), "id", to)
    declared = {field["name"]: field.get("type", "any") for field in interface.get("inputs", ())}
    for index, case in placed(cases):
        at = ("eval", "cases", index)
        if case.get("min_pass", 1) > case.get("repeats", 1):
            to.report(
                (*at, "min_pass"),
                f"is {case['min_pass']}, but there are only {case.get('repeats', 1)} repeats",
            )
        for name, value in case.get("inputs", {}).items() if "inputs" in interface else ():
            if name not in declared:
                problem: str | None = f"unknown input '{name}'{suggestion(name, declared, 'declared are')}"
            else:
                problem = type_problem(value, declared[name])
            if problem:
                to.report((*at, "inputs", name), problem)
