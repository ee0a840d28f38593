"""Look up every name a document uses: blocks, souls, workflows, and paths with what a block can see."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from workflows_app.engine.definition import CarryContext
from workflows_app.engine.parse import KeyPath
from workflows_app.engine.schema.kinds import Checker, Reference
from workflows_app.engine.validate.blocks import Draft
from workflows_app.engine.validate.graph import DraftGraph
from workflows_app.engine.values.paths import (
    BLOCK_FIELDS,
    INPUT_ROOTS,
    ROOTS,
    BadPath,
    Parts,
    PathPart,
    canonical,
    closest,
    did_you_mean,
    parse_path,
    scan_template,
    suggestion,
)

_OWN = ("exit_conditions", "routes")  # conditions on the block's own output


@dataclass
class References:
    """Everything that can be named, and the checks that it is; where it is None, any name is accepted."""

    drafts: dict[str, Draft]
    graph: DraftGraph
    to: Checker
    souls: Collection[str] | None
    workflows: Collection[str] | None
    inputs: Mapping[str, str | None] | None

    def check(self) -> None:
        """Report every reference that leads nowhere."""
        names = {"block": self.drafts, "soul": self.souls, "workflow": self.workflows}
        for reference in self.to.references:
            if reference.what == "path":
                self._check_path(reference)
            elif reference.what == "template":
                self._check_template(reference)
            else:
                known = names[reference.what]
                if known is not None and reference.value not in known:
                    hint = did_you_mean(reference.value, known)
                    self.to.report(reference.at, f"unknown {reference.what} '{reference.value}'{hint}")

    def _check_template(self, reference: Reference) -> None:
        draft = self.drafts.get(str(reference.at[1]))
        for part in scan_template(reference.value)[0]:
            if isinstance(part, PathPart):
                line = reference.value.count("\n", 0, part.offset) + 1
                if draft is not None and "inputs" in draft.raw and draft.raw["inputs"] is not None:
                    self._check_local(part, draft, reference.at, line)
                else:
                    self._check_parts(part.parts, draft, reference.at, line)

    def _check_local(self, part: PathPart, draft: Draft, at: KeyPath, line: int) -> None:
        """A block with `inputs` sees those alone."""
        local = draft.raw["inputs"]
        name = part.parts[0]
        if name in INPUT_ROOTS and len(part.parts) > 1:
            name = part.parts[1]
        if isinstance(local, dict) and name not in local:
            hint = suggestion(name, [str(one) for one in local], "its `inputs` are")
            self.to.report(at, f"'{part.text}' is not among what block '{draft.id}' sees{hint}", line)

    def _check_path(self, reference: Reference) -> None:
        at = reference.at
        parts = parse_path(reference.value)
        if at[0] != "blocks":
            self._check_parts(parts, None, at, None)
            return
        draft = self.drafts[str(at[1])]
        if draft.kind == "gate" and at[2:] == ("eval_key",):
            self._check_gated(draft, parts, at)
        else:
            self._check_parts(own_parts(parts, draft, self.drafts, str(at[2])), draft, at, None)

    def _check_gated(self, draft: Draft, parts: Parts, at: KeyPath) -> None:
        gated = gated_block(parts, self.drafts)
        if gated is None:
            hint = did_you_mean(parts[-1] if parts[0] in ROOTS else parts[0], self.drafts)
            self.to.report(at, f"'{'.'.join(parts)}' is not the id of a block{hint}")
            return
        if not self.graph.sees(draft.id, gated):
            self.to.report(at, self._not_upstream(draft, gated))
        elif draft.raw.get("soul_ref") is None and not self.drafts[gated].raw.get("assertions"):
            self.to.report(
                at,
                f"block '{gated}' has no assertions to decide by; add some, or add a `soul_ref` to the gate",
            )

    def _check_parts(self, parts: Parts, draft: Draft | None, at: KeyPath, line: int | None) -> None:
        carried = self._carried(draft)
        try:
            meant = canonical(parts, self.drafts, carried)
        except BadPath as error:
            self.to.report(at, self._explained(str(error), parts), line)
            return
        if meant[0] == "blocks":
            if draft is not None and not self._sees(draft, meant[1], at):
                self.to.report(at, self._not_upstream(draft, meant[1]), line)
        elif meant[0] == "inputs":
            self._check_input(meant, draft, at, line)
        elif meant[0] == "round":
            if draft is None or not (self.graph.around(draft.id) or draft.kind == "loop"):
                self.to.report(at, "'round' is known only inside a loop", line)
        elif meant[0] in carried and len(meant) > 1:
            self._check_carried(meant, carried[meant[0]], at, line)

    def _check_input(self, meant: Parts, draft: Draft | None, at: KeyPath, line: int | None) -> None:
        if len(meant) == 1 or self.inputs is None:
            return
        if meant[1] not in self.inputs:
            hint = suggestion(meant[1], self.inputs, "declared are")
            self.to.report(at, f"unknown input '{meant[1]}'{hint}", line)
            return
        writer = self.inputs[meant[1]]
        if writer is not None and draft is not None and not self.graph.sees(draft.id, writer):
            self.to.report(at, self._not_upstream(draft, writer), line)

    def _check_carried(self, meant: Parts, loop: Draft, at: KeyPath, line: int | None) -> None:
        carry = loop.get("carry_context", {})
        sources = carry.get("source_blocks") or loop.get("inner_block_refs", ())
        if carry.get("mode", "last") == "last" and meant[1] not in sources:
            hint = suggestion(meant[1], sources, "it has")
            self.to.report(at, f"'{meant[0]}' does not carry '{meant[1]}'{hint}", line)

    def _carried(self, draft: Draft | None) -> dict[str, Draft]:
        """The loops around a block that carry context, by the name it is known under."""
        if draft is None:
            return {}
        around = [self.drafts[loop] for loop in self.graph.around(draft.id)]
        if draft.kind == "loop":
            around.append(draft)
        carries = [
            loop
            for loop in around
            if loop.get("carry_context", {}).get("enabled", "carry_context" in loop.values)
        ]
        return {loop.get("carry_context").get("inject_as", CarryContext.inject_as): loop for loop in carries}

    def _sees(self, draft: Draft, name: str, at: KeyPath) -> bool:
        if self.graph.sees(draft.id, name):
            return True
        if at[2] in _OWN and name == draft.id:
            return True
        # After a round a loop sees what ran in it.
        return at[2] == "break_condition" and draft.id in (name, *self.graph.around(name))

    def _not_upstream(self, draft: Draft, name: str) -> str:
        loops = set(self.graph.around(draft.id)) & set(self.graph.around(name))
        if name == draft.id:
            return f"block '{name}' cannot read its own output"
        if loops:
            return (
                f"block '{name}' comes after '{draft.id}' in the loop; "
                "read the previous round's output with `carry_context`"
            )
        return f"block '{name}' is not upstream of '{draft.id}'; add it to `depends`"

    def _explained(self, message: str, parts: Parts) -> str:
        if message.startswith("unknown name") and "Did you mean" not in message:
            if self.inputs is not None and parts[0] in self.inputs:
                return f"{message}. Did you mean 'inputs.{'.'.join(parts)}'?"
            return f"{message}; paths begin with inputs, run, round or a block id"
        return message


def own_parts(parts: Parts, draft: Draft, drafts: Collection[str], key: str) -> Parts:
    """The path of a condition at a key of a block; one that names nothing else is a field of the block's own output.

    Of a loop's `break_condition` it is a field of the last inner output.
    """
    root = parts[0]
    if root in ROOTS or root in drafts or key not in (*_OWN, "break_condition"):
        return parts
    owner = draft.id
    if key == "break_condition":
        inner = draft.get("inner_block_refs", ())
        carry = draft.get("carry_context", {})
        if not inner or inner[-1] not in drafts or root == carry.get("inject_as", CarryContext.inject_as):
            return parts
        owner = inner[-1]
    if root in BLOCK_FIELDS and (len(parts) == 1 or root == "json"):
        return ("blocks", owner, *parts)
    is_misspelt = len(parts) > 1 and closest(root, drafts) is not None
    return parts if is_misspelt else ("blocks", owner, "json", *parts)


def gated_block(parts: Parts, drafts: Collection[str]) -> str | None:
    """The block a gate's `eval_key` names: `draft`, `results.draft` or `blocks.draft.output`."""
    names = parts[1:] if parts[0] in ("blocks", "results") else parts
    if not names or names[0] not in drafts or names[1:] not in ((), ("output",)):
        return None
    return names[0]
