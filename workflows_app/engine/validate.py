"""Judge a whole document in one pass: a definition, or every fault with its path and line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from .build import build_definition
from .definition import CarryContext, Fault, InvalidDocument, WorkflowDefinition
from .inputs import type_problem
from .keys import DOCUMENT
from .kinds import Checker, TooManyFaults
from .outputs import output_parts
from .parse import MAX_FAULTS, KeyPath, ParsedDocument, format_path, parse
from .paths import INPUT_ROOTS, BadPath, canonical, did_you_mean, parse_path
from .shapes import placed
from .validate_blocks import CheckAssertions, Draft, check_assertions_of, check_code_of, read_blocks
from .validate_graph import DraftGraph
from .validate_references import References

__all__ = ["compile_document", "validate"]


def compile_document(
    text: str | bytes,
    *,
    check_assertions: CheckAssertions | None = None,
    known_souls: Collection[str] | None = None,
    known_workflows: Collection[str] | None = None,
) -> WorkflowDefinition:
    """The definition a text describes, or InvalidDocument with all its faults."""
    definition, faults = validate(
        parse(text),
        check_assertions=check_assertions,
        known_souls=known_souls,
        known_workflows=known_workflows,
    )
    if definition is None:
        raise InvalidDocument(faults)
    return definition


def validate(
    document: ParsedDocument,
    *,
    check_assertions: CheckAssertions | None = None,
    known_souls: Collection[str] | None = None,
    known_workflows: Collection[str] | None = None,
) -> tuple[WorkflowDefinition | None, list[Fault]]:
    """The definition of a parsed document, or every fault in it, in the order of lines.

    `known_souls` and `known_workflows` are what the library holds; None means it is not asked.
    """
    if not document.is_whole:
        return None, _ordered(document.faults)
    to = Checker()
    library = _Library(check_assertions, known_souls, known_workflows)
    try:
        values, drafts, graph = _check(document, to, library)
    except TooManyFaults:
        last = Fault("", None, f"more than {MAX_FAULTS} faults; the rest was not looked at")
        return None, [*_ordered([_located(document, *fault) for fault in to.faults]), last]
    faults = [*document.faults, *(_located(document, *fault) for fault in to.faults)]
    if faults:
        return None, _ordered(faults)
    return build_definition(document, values, drafts, graph.edges), []


class _Library(NamedTuple):
    """What the caller knows and this module must not import."""

    check_assertions: CheckAssertions | None
    souls: Collection[str] | None
    workflows: Collection[str] | None


def _check(
    document: ParsedDocument, to: Checker, library: _Library
) -> tuple[dict[str, Any], dict[str, Draft], DraftGraph]:
    """Check everything: each block by itself, then the graph, then what names what."""
    values = DOCUMENT.check_keys(document.value, (), to)
    drafts = read_blocks(values.get("blocks", {}), to)
    graph = DraftGraph(drafts, values.get("workflow", {}), to)
    souls = None if library.souls is None else {*library.souls, *_inline_souls(document.value)}
    inputs = _known_inputs(values, drafts)
    known = References(drafts, graph, to, souls=souls, workflows=library.workflows, inputs=inputs)
    known.check(to.references)
    _check_sections(values, drafts, to)
    for draft in drafts.values():
        if draft.kind == "code":
            check_code_of(draft, to)
    for configs, at in _assertions(values, drafts):
        check_assertions_of(configs, at, to, library.check_assertions)
    return values, drafts, graph


def _inline_souls(value: Mapping[str, Any]) -> Collection[str]:
    """The souls a document brings along, faulty ones included."""
    souls = value.get("souls")
    return souls if isinstance(souls, dict) else ()


def _located(document: ParsedDocument, at: KeyPath, message: str, line_in_text: int | None) -> Fault:
    line = document.line(at) if line_in_text is None else document.text_line(at, line_in_text)
    spelling = document.spelling(at) if at and "must be" in message else None
    if spelling is not None:
        message += f" (unquoted, {spelling} is a word for {str(document.get(at)).lower()} in YAML)"
    return Fault(format_path(at), line, message)


def _ordered(faults: list[Fault]) -> list[Fault]:
    """Faults by line, each once."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.path))


def _known_inputs(values: Mapping[str, Any], drafts: Mapping[str, Draft]) -> dict[str, str | None] | None:
    """The inputs that can be named, with the block that puts one there later; None: the run takes anything."""
    interface = values.get("interface", {})
    if "inputs" not in interface:
        return None
    names: dict[str, str | None] = {}
    for draft in drafts.values():
        if draft.kind == "workflow":
            for target in draft.get("outputs", {}):
                root, _, rest = target.partition(".")
                if root in INPUT_ROOTS and rest:
                    names[output_parts(target)[0]] = draft.id
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
            to.fault(
                ("souls", name, "id"), f"is '{soul['id']}', but the soul's key is '{name}'; they must agree"
            )
    for draft in drafts.values():
        if draft.kind == "workflow":
            _check_child_outputs(draft, to)
        elif draft.kind == "loop":
            _check_loop(draft, drafts, to)
    _check_interface(values.get("interface", {}), to)
    _check_cases(values, to)


def _check_child_outputs(draft: Draft, to: Checker) -> None:
    for target in draft.get("outputs", {}):
        try:
            parse_path(target)
        except BadPath as error:
            to.fault((*draft.at, "outputs", target), str(error))


def _check_loop(draft: Draft, drafts: Mapping[str, Draft], to: Checker) -> None:
    inner = [drafts[name] for name in draft.get("inner_block_refs", ()) if name in drafts]
    exits: set[str] = set()
    are_known = True
    for block in inner:
        exits.update(block.exits or ())
        are_known = are_known and block.exits is not None
    for key in ("break_on_exit", "retry_on_exit"):
        if key in draft.values and are_known and draft.values[key] not in exits:
            hint = (
                did_you_mean(draft.values[key], exits) or f"; they have {', '.join(sorted(exits)) or 'none'}"
            )
            to.fault((*draft.at, key), f"no inner block has an exit '{draft.values[key]}'{hint}")
    carry = draft.get("carry_context", {})
    name = carry.get("inject_as", CarryContext.inject_as) if carry else None
    if name in drafts:
        at = (*draft.at, "carry_context", "inject_as")
        to.fault(at, f"'{name}' is the id of a block; choose another name")
    for index, source in placed(carry.get("source_blocks", ())):
        if source in drafts and source not in draft.get("inner_block_refs", ()):
            to.fault(
                (*draft.at, "carry_context", "source_blocks", index), f"'{source}' is not inside this loop"
            )


def _check_interface(interface: Mapping[str, Any], to: Checker) -> None:
    for key in ("inputs", "outputs"):
        seen: set[str] = set()
        for index, field in placed(interface.get(key, ())):
            at = ("interface", key, index)
            if field["name"] in seen:
                to.fault((*at, "name"), f"'{field['name']}' is declared twice")
            seen.add(field["name"])
            if key == "inputs":
                _check_input(field, at, to)


def _check_input(field: Mapping[str, Any], at: KeyPath, to: Checker) -> None:
    if "default" in field and (problem := type_problem(field["default"], field.get("type", "any"))):
        to.fault((*at, "default"), problem)
    if "target" in field:
        try:
            target = canonical(parse_path(field["target"]), ())
        except BadPath:
            target = ()
        if target not in (("inputs", field["name"]), ()) or not target:
            to.fault((*at, "target"), f"must be inputs.{field['name']}; other targets are not supported")


def _check_cases(values: Mapping[str, Any], to: Checker) -> None:
    declared = {field["name"]: field for field in values.get("interface", {}).get("inputs", ())}
    takes_anything = "inputs" not in values.get("interface", {})
    seen: set[str] = set()
    for index, case in placed(values.get("eval", {}).get("cases", ())):
        at = ("eval", "cases", index)
        if case["id"] in seen:
            to.fault((*at, "id"), f"the case id '{case['id']}' is already taken above")
        seen.add(case["id"])
        if case.get("min_pass", 1) > case.get("repeats", 1):
            to.fault(
                (*at, "min_pass"),
                f"is {case['min_pass']}, but there are only {case.get('repeats', 1)} repeats",
            )
        if takes_anything:
            continue
        for name, value in case.get("inputs", {}).items():
            if name not in declared:
                hint = did_you_mean(name, declared) or f"; declared are {', '.join(declared) or 'none'}"
                to.fault((*at, "inputs", name), f"unknown input '{name}'{hint}")
            elif problem := type_problem(value, declared[name].get("type", "any")):
                to.fault((*at, "inputs", name), problem)
