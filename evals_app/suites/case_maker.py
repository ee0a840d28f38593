"""Makes eval cases from production: a run node becomes a proposed case, a whole run a case to copy."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evals_app.cases.prepare import is_measured
from evals_app.suites.case_text import CannotInsert, case_lines, insert_case
from workflows_app.documents.compile import valid_document
from workflows_app.engine.definition import CodeBlockDef, LoopBlockDef, WorkflowDefinition
from workflows_app.engine.graph import Graph
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.schedule import Plan
from workflows_app.engine.values.inputs import check_inputs
from workflows_app.engine.values.outputs import output_text
from workflows_app.models import NodeStatus, Run, RunNode, WorkflowVersion
from workflows_app.security.credentials import shown_inputs
from workflows_app.services import Refused, save_version

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@dataclass(frozen=True)
class CaseProposal:
    """A proposed case, and the workflow's text with it."""

    slug: str
    definition: WorkflowDefinition
    based_on: int
    case_id: str
    case: dict[str, Any]
    yaml_text_old: str
    yaml_text_new: str
    run_name: str
    notes: list[str] = field(default_factory=list)

    @property
    def diff(self) -> str:
        """What changes, as a unified diff."""
        old, new = self.yaml_text_old.splitlines(), self.yaml_text_new.splitlines()
        lines = difflib.unified_diff(old, new, f"{self.slug}.yaml", f"{self.slug}.yaml", lineterm="")
        return "\n".join(lines) + "\n"


def propose_case(
    node: RunNode, *, text: str | None = None, case_id: str | None = None, freeze_output: bool = False
) -> CaseProposal:
    """A case from a finished node: the run's inputs, the outputs before it as fixtures, the assertions that passed.

    `text` is the document to add to instead of the current version; `freeze_output` also freezes the node's own
    output, so that the case needs no provider and guards the assertions instead of the block.
    """
    version, definition, old = _document(node, text)
    block_id = _block_of(node, definition)
    fixtures = dict(_fixtures(node, block_id, definition))
    if freeze_output:
        fixtures[block_id] = _fixture(node.output)
    case: dict[str, Any] = {
        "id": case_id or _free_id(f"{block_id}-run-{node.run.number}", definition),
        "description": f"From run #{node.run.number}.",
        "inputs": _inputs(node, definition),
    }
    if fixtures:
        case["fixtures"] = fixtures
    case["expected"] = {block_id: proposed_assertions(node, is_frozen=freeze_output)}
    try:
        new = insert_case(old, case)
    except CannotInsert as reason:
        raise Refused("conflict", str(reason)) from None
    return CaseProposal(
        definition=valid_document(new, node.run.workflow.slug),
        slug=node.run.workflow.slug,
        based_on=version.number,
        case_id=case["id"],
        case=case,
        yaml_text_old=old,
        yaml_text_new=new,
        run_name=str(node.run),
        notes=list(_notes(node, block_id, definition, case)),
    )


def save_case(proposal: CaseProposal, user: AbstractBaseUser | None = None) -> WorkflowVersion:
    """Save the proposal as the workflow's newest version; `Stale` if another was saved since it was made."""
    return save_version(
        proposal.slug,
        proposal.yaml_text_new,
        definition=proposal.definition,
        author=user,
        message=f"Add eval case {proposal.case_id} from {proposal.run_name}",
        based_on=proposal.based_on,
    )


def _document(node: RunNode, text: str | None) -> tuple[WorkflowVersion, WorkflowDefinition, str]:
    workflow = node.run.workflow
    version = workflow.current_version
    if version is None:
        raise Refused("no_version", f"{workflow.slug} has no saved version to add a case to.")
    if text is None:
        return version, version.definition, version.yaml
    return version, valid_document(text, workflow.slug), text


def _block_of(node: RunNode, definition: WorkflowDefinition) -> str:
    block_id, _, branch = node.node_id.partition(".")
    if branch:
        raise Refused(
            "conflict", f"{node.node_id} is a branch; make a case of its block {block_id!r} instead."
        )
    if block_id not in definition.blocks:
        raise Refused("conflict", f"The workflow has no block {block_id!r} any more.")
    if node.status != NodeStatus.COMPLETED:
        state = "has failed" if node.status == NodeStatus.FAILED else f"is {node.status}"
        raise Refused("conflict", f"Only a completed block makes a case; {block_id} {state}.")
    return block_id


def _inputs(node: RunNode, definition: WorkflowDefinition) -> dict[str, Any]:
    """The run's inputs that the workflow still declares; nulls are left out."""
    inputs = shown_inputs(node.run)  # many people read a case, so its secrets stay hidden
    if definition.inputs is None:
        return inputs
    declared = {one.name for one in definition.inputs}
    return {name: value for name, value in inputs.items() if name in declared and value is not None}


def _fixtures(node: RunNode, block_id: str, definition: WorkflowDefinition) -> Iterator[tuple[str, Any]]:
    """The output of every block before this one; a loop is represented by the blocks inside it."""
    graph = Graph(definition)
    upstream, own_loops = graph.upstream(block_id), set(graph.around(block_id))
    done = node.run.nodes.filter(status=NodeStatus.COMPLETED).order_by("iteration", "attempt")
    outputs: dict[str, str] = {}
    for one in done:
        is_sibling = one.node_id in definition.blocks and own_loops & set(graph.around(one.node_id))
        if not is_sibling or one.iteration <= node.iteration:
            outputs[one.node_id] = one.output
    for name, block in definition.blocks.items():
        if name in upstream and name in outputs and not isinstance(block, LoopBlockDef):
            yield name, _fixture(outputs[name])


def _fixture(output: str) -> Any:
    """An output as a person would write it: JSON as YAML where that gives back the same text."""
    try:
        value = storable_json(output)
    except ValueError:
        return output
    is_readable = isinstance(value, (dict, list)) and output_text(value) == output
    return value if is_readable else output


def proposed_assertions(node: RunNode, *, is_frozen: bool = False) -> list[dict[str, Any]]:
    """The block's assertions that this node passed; without any, a minimal one."""
    block = node.run.version.definition.blocks[node.node_id]
    configs = block.assertions or []
    results: list[Mapping[str, Any]] = (node.eval_results or {}).get("assertions", [])
    passed = [dict(configs[one["index"]]) for one in results if one["passed"] and one["index"] < len(configs)]
    kept = [config for config in passed if not (is_frozen and is_measured(config))]
    if kept:
        return kept
    if isinstance(block, CodeBlockDef):
        return [{"type": "equals", "value": _fixture(node.output)}]
    return [{"type": "word-count", "value": {"min": 1}}]


def _free_id(wanted: str, definition: WorkflowDefinition) -> str:
    taken = {case.id for case in definition.eval.cases} if definition.eval else set()
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted}-{number}") not in taken)


def _notes(
    node: RunNode, block_id: str, definition: WorkflowDefinition, case: Mapping[str, Any]
) -> Iterator[str]:
    """What the author should know before saving."""
    if node.run.version_id != node.run.workflow.current_version_id:
        yield f"The run used version {node.run.version.number}; the case is added to a newer text."
    if node.eval_passed is False:
        yield "Some of the block's assertions failed in this run; only those that passed are proposed."
    if block_id in case.get("fixtures", {}):
        return
    inputs, _ = check_inputs(definition, case["inputs"])
    plan = Plan(definition, inputs=inputs, frozen=case.get("fixtures"))
    if all(step.block_id != block_id for step in plan.ready()) and not Graph(definition).around(block_id):
        yield f"With these fixtures no route leads to {block_id}: give the blocks before it other outputs."


def case_yaml(run: Run) -> str:
    """The entry for `eval.cases` that repeats this run without calling any model."""
    nodes = run.nodes.filter(status=NodeStatus.COMPLETED).order_by("iteration", "attempt")
    case = {
        "id": f"run-{run.number}",
        "description": f"Taken from run #{run.number} of version {run.version.number}.",
        "inputs": shown_inputs(run),
        "fixtures": dict(nodes.exclude(node_id__contains=".").values_list("node_id", "output")),
        "include_block_assertions": True,
    }
    return "\n".join(case_lines(case)) + "\n"
