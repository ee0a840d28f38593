"""What a block can see: the inputs and results that `{{ path }}`, `inputs`, conditions and code data name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from workflows_app.engine.definition import (
    BaseBlockDef,
    CarryContext,
    LoopBlockDef,
    WorkflowBlockDef,
    WorkflowDefinition,
)
from workflows_app.engine.graph import Graph
from workflows_app.engine.records import NOT_JSON, NodeRecord, Step
from workflows_app.engine.results import BlockFailure
from workflows_app.engine.values.conditions import as_text
from workflows_app.engine.values.outputs import written_inputs
from workflows_app.engine.values.paths import (
    INPUT_ROOTS,
    BadPath,
    BadTemplate,
    Parts,
    canonical,
    parse_path,
    parse_template,
)


class UnknownPath(LookupError):
    """A path without a value; the message names the path and the reason."""


class RunContext:
    """What a run knows so far: its inputs and the latest result of each block."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        graph: Graph,
        inputs: Mapping[str, Any],
        run: Mapping[str, Any],
    ) -> None:
        self.definition = definition
        self.graph = graph
        self.inputs = inputs
        self.run = run
        self.records: dict[str, NodeRecord] = {}  # the latest by block
        self._rounds: dict[str, list[dict[str, NodeRecord]]] = {}
        self.carried_names = {
            block.carry_context.inject_as: block.id
            for block in definition.blocks.values()
            if isinstance(block, LoopBlockDef) and block.carry_context and block.carry_context.enabled
        }
        self._canonical: dict[str, Parts] = {}
        # The `workflow` blocks whose outputs go beside the run's inputs, with the names they write.
        self._writers = {
            block.id: names
            for block in definition.blocks.values()
            if isinstance(block, WorkflowBlockDef) and (names := written_inputs(block.outputs or ()))
        }

    # Called by the plan as the run proceeds

    def enter_loop(self, loop_id: str) -> None:
        self._rounds[loop_id] = []

    def enter_round(self, loop_id: str) -> None:
        self._rounds[loop_id].append({})

    def add(self, block_id: str, record: NodeRecord) -> None:
        # The latest stands last, so that of two that write one name the later one counts.
        self.records.pop(block_id, None)
        self.records[block_id] = record
        loop_id = self.graph.loops.get(block_id)
        if loop_id is not None:
            self._rounds[loop_id][-1][block_id] = record

    # Others ask

    def at(self, step: Step) -> BlockContext:
        """What the block of this step sees."""
        return BlockContext(self, step)

    def outputs(self) -> dict[str, Any]:
        """The run's outputs: the declared ones, else the text of each terminal block that completed."""
        if self.definition.outputs:
            return {field.name: self._output(field.source) for field in self.definition.outputs}
        done = {block_id: self.records.get(block_id) for block_id in self.graph.terminals()}
        return {block_id: one.output for block_id, one in done.items() if one and one.status == "completed"}

    def _output(self, source: str) -> Any:
        try:
            return self.lookup(self.canonical(source), self.definition.blocks)
        except UnknownPath:
            return None  # its block was skipped, or did not say

    def canonical(self, path: str) -> Parts:
        """The one spelling of a path as parts."""
        known = self._canonical.get(path)
        if known is None:
            try:
                known = canonical(parse_path(path), self.definition.blocks, self.carried_names)
            except BadPath as error:
                raise UnknownPath(f"'{path}': {error}") from None
            self._canonical[path] = known
        return known

    def lookup(
        self, parts: Parts, visible: Container[str], round_: int | None = None, loops: Sequence[str] = ()
    ) -> Any:
        """The value at a canonical path, for a block inside `loops` that may read the `visible` blocks."""
        root = parts[0]
        if root == "blocks":
            return _field(self.record_of(parts[1], visible, parts), parts)
        if root == "inputs":
            return _walk(self.inputs_for(visible), parts, 1)
        if root == "run":
            return _walk(self.run, parts, 1)
        if root == "round":
            if round_ is None:
                raise UnknownPath("'round' is known only inside a loop.")
            return round_
        return self._carried_value(parts, loops)

    def inputs_for(self, visible: Container[str]) -> Mapping[str, Any]:
        """The run's inputs, with what child workflows upstream have put beside them."""
        if not self._writers:
            return self.inputs
        found = dict(self.inputs)
        for block_id, record in self.records.items():
            if block_id in self._writers and block_id in visible and isinstance(value := record.json, dict):
                found.update({name: value[name] for name in self._writers[block_id] if name in value})
        return found

    def record_of(self, block_id: str, visible: Container[str], parts: Parts) -> NodeRecord:
        record = self.records.get(block_id) if block_id in visible else None
        if record is not None:
            return record
        why = "has not run" if block_id in visible else "is not upstream of this block"
        raise UnknownPath(f"'{'.'.join(parts)}': block '{block_id}' {why}.")

    def carried(self, loop_id: str) -> Any:
        """The previous round's outputs by block; with mode `all`, a list with one such mapping per round."""
        block = self.definition.blocks[loop_id]
        if not isinstance(block, LoopBlockDef):
            raise TypeError(f"Block '{loop_id}' is not a loop.")
        carry = block.carry_context or CarryContext()
        sources = carry.source_blocks or block.inner_block_refs
        carried = [_round_outputs(one, sources) for one in self._rounds[loop_id][:-1]]
        if carry.mode == "all":
            return carried
        return carried[-1] if carried else _round_outputs({}, sources)

    def _carried_value(self, parts: Parts, loops: Sequence[str]) -> Any:
        loop_id = self.carried_names.get(parts[0])
        if loop_id is None or loop_id not in loops:
            raise UnknownPath(f"'{parts[0]}' is known only inside the loop that carries it.")
        if len(parts) == 1 and len(self._rounds.get(loop_id, ())) < 2:
            return ""  # nothing is carried into the first round
        return _walk(self.carried(loop_id), parts, 1)


class BlockContext:
    """What one block sees. A block with `inputs` sees those alone, by their local names."""

    def __init__(self, run: RunContext, step: Step) -> None:
        self.run = run
        self.step = step
        self.block: BaseBlockDef = run.definition.blocks[step.block_id]
        self.visible = run.graph.upstream(step.block_id)
        self.loops = run.graph.around(step.block_id)
        if step.kind == "loop":
            # A break condition is asked inside the loop, when all of a round has run.
            self.loops.append(step.block_id)
            self.visible = run.graph.with_inside(self.visible, step.block_id)

    def lookup(self, path: str, own: NodeRecord | None = None) -> Any:
        """The value at a path, whatever the block's `inputs` are; `own` is its result if not recorded yet."""
        parts = self.run.canonical(path)
        if own is not None and parts[:2] == ("blocks", self.block.id):
            return _field(own, parts)
        return self.run.lookup(parts, self.visible, self.step.round, self.loops)

    def local(self, path: str) -> Any:
        """The value at a path as the block's own texts name it."""
        inputs = self.block.inputs
        if inputs is None:
            return self.lookup(path)
        parts = parse_path(path)
        if parts[0] in INPUT_ROOTS and len(parts) > 1 and parts[0] not in inputs:
            parts = parts[1:]
        if parts[0] not in inputs:
            known = ", ".join(inputs) or "none"
            raise UnknownPath(
                f"'{path}' is not among the inputs of block '{self.block.id}' (it has {known})."
            )
        return _walk(self.lookup(inputs[parts[0]]), parts, 1)

    def render(self, template: str) -> str:
        """The template with each `{{ path }}` replaced by its value's text."""
        try:
            pieces = parse_template(template)
            return "".join(
                piece if isinstance(piece, str) else as_text(self.local(piece.text)) for piece in pieces
            )
        except (UnknownPath, BadTemplate) as error:
            raise BlockFailure("unknown_path", f"Cannot fill in the text: {error}") from None

    def inputs(self) -> dict[str, Any]:
        """The block's own `inputs`, looked up."""
        try:
            return {name: self.lookup(path) for name, path in (self.block.inputs or {}).items()}
        except UnknownPath as error:
            raise BlockFailure("unknown_path", f"Cannot take in inputs: {error}") from None

    def data(self) -> dict[str, Any]:
        """The argument of a code block's `main(data)`."""
        if self.block.inputs is not None:
            return self.inputs()
        run = self.run
        records = {
            block_id: run.records[block_id]
            for block_id in run.definition.blocks
            if block_id in self.visible and block_id in run.records
        }
        outputs = {block_id: record.output for block_id, record in records.items()}
        inputs = dict(run.inputs_for(self.visible))
        return {
            **outputs,
            "inputs": inputs,
            "workflow": inputs,
            "shared_memory": inputs,
            "results": outputs,
            "blocks": {
                block_id: {**_fields(record), "json": None if record.json is NOT_JSON else record.json}
                for block_id, record in records.items()
            },
            "run": dict(run.run),
            "round": self.step.round,
            **{name: run.carried(loop) for name, loop in run.carried_names.items() if loop in self.loops},
        }

    def depended_outputs(self) -> dict[str, str]:
        """The outputs of the blocks that led here, by id."""
        records = self.run.records
        return {
            source: records[source].output
            for source in self.run.graph.sources(self.step.block_id)
            if source in records and records[source].status == "completed"
        }


def _fields(record: NodeRecord) -> dict[str, str | None]:
    return {"output": record.output, "exit": record.exit_handle, "error": record.error_message}


def _field(record: NodeRecord, parts: Parts) -> Any:
    """The value at `blocks.<id>.<field>…` of a record."""
    if parts[2] != "json":
        return _fields(record)[parts[2]]
    if record.json is NOT_JSON:
        raise UnknownPath(f"'{'.'.join(parts)}': the output of '{parts[1]}' is not JSON.")
    return _walk(record.json, parts, 3)


def _round_outputs(done: Mapping[str, NodeRecord], sources: Iterable[str]) -> dict[str, str]:
    """The outputs of one round; a block that did not run in it has an empty one."""
    return {ref: done[ref].output if ref in done else "" for ref in sources}


def _walk(value: Any, parts: Parts, start: int) -> Any:
    """Follow the rest of a path into a value: keys of maps, indexes of lists."""
    for index in range(start, len(parts)):
        part = parts[index]
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            place = ".".join(parts[:index]) or "the value"
            raise UnknownPath(f"'{'.'.join(parts)}' is unknown: {_what_is_missing(value, place, part)}")
    return value


def _what_is_missing(value: Any, place: str, part: str) -> str:
    if isinstance(value, Mapping):
        known = ", ".join(sorted(map(str, value))[:10])
        return f"{place} has no '{part}'" + (f" (it has {known})." if known else " (it is empty).")
    if isinstance(value, list):
        return f"{place} is a list of {len(value)} and has no item '{part}'."
    return f"{place} is {'null' if value is None else 'a ' + type(value).__name__} and has no fields."
