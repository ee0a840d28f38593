"""What a block can see: the inputs and results that `{{ path }}`, `inputs`, conditions and code data name."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from workflows_app.engine.conditions import as_text
from workflows_app.engine.definition import (
    BaseBlockDef,
    CarryContext,
    LoopBlockDef,
    WorkflowBlockDef,
    WorkflowDefinition,
)
from workflows_app.engine.graph import Graph
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.outputs import output_parts
from workflows_app.engine.paths import (
    INPUT_ROOTS,
    BadPath,
    BadTemplate,
    Parts,
    canonical,
    parse_path,
    parse_template,
)
from workflows_app.engine.records import NodeRecord, Step
from workflows_app.engine.results import BlockFailure

_NOT_JSON: Final = object()
_JSON_STARTS: Final = frozenset('{["-0123456789tfn')


class UnknownPath(LookupError):
    """A path that names nothing here; the sentence says which and why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


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
        self._parsed: dict[str, tuple[NodeRecord, Any]] = {}
        self._rounds: dict[str, list[dict[str, NodeRecord]]] = {}
        self._carried = {
            block.carry_context.inject_as: block.id
            for block in definition.blocks.values()
            if isinstance(block, LoopBlockDef) and block.carry_context and block.carry_context.enabled
        }
        self._canonical: dict[str, Parts] = {}
        self._writers = _writers(definition)

    # The plan tells it what happens

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
                known = canonical(parse_path(path), self.definition.blocks, self._carried)
            except BadPath as error:
                raise UnknownPath(f"'{path}': {error}") from None
            self._canonical[path] = known
        return known

    def lookup(
        self, parts: Parts, visible: Container[str], round_: int | None = None, loops: Sequence[str] = ()
    ) -> Any:
        """The value at a canonical path, for a block that may see the given ones and is inside the given loops."""
        root = parts[0]
        if root == "blocks":
            return self._block_value(parts, visible)
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
        writers = [block_id for block_id in self._writers if block_id in visible]
        if not writers:
            return self.inputs
        found = dict(self.inputs)
        for block_id in self.records:
            if block_id in writers:
                value = self.json_of(block_id, self.records[block_id])
                if isinstance(value, dict):
                    found.update({name: value[name] for name in self._writers[block_id] if name in value})
        return found

    def _block_value(self, parts: Parts, visible: Container[str]) -> Any:
        record = self.record_of(parts[1], visible, parts)
        return _field(record, parts, lambda: self.json_of(parts[1], record))

    def record_of(self, block_id: str, visible: Container[str], parts: Parts) -> NodeRecord:
        record = self.records.get(block_id) if block_id in visible else None
        if record is not None:
            return record
        why = "has not run" if block_id in visible else "is not upstream of this block"
        raise UnknownPath(f"'{'.'.join(parts)}': block '{block_id}' {why}.")

    def json_of(self, block_id: str, record: NodeRecord) -> Any:
        """The parsed output, parsed when first asked for."""
        known = self._parsed.get(block_id)
        if known is None or known[0] is not record:
            known = self._parsed[block_id] = (record, parse_json(record.output))
        return known[1]

    def carried_for(self, loops: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """The carried context of some loops, by name."""
        for name, loop_id in self._carried.items():
            if loop_id in loops:
                yield name, self.carried(loop_id)

    def carried(self, loop_id: str) -> Any:
        """What the round before tells this one, as a map of block to output, or a list of what all of them do."""
        block = self.definition.blocks[loop_id]
        if not isinstance(block, LoopBlockDef):
            raise TypeError(f"Block '{loop_id}' is not a loop.")
        carry = block.carry_context or CarryContext()
        sources = carry.source_blocks or block.inner_block_refs
        told = [_told(one, sources) for one in self._rounds[loop_id][:-1]]
        if carry.mode == "all":
            return told
        return told[-1] if told else _told({}, sources)

    def _carried_value(self, parts: Parts, loops: Sequence[str]) -> Any:
        loop_id = self._carried.get(parts[0])
        if loop_id is None or loop_id not in loops:
            raise UnknownPath(f"'{parts[0]}' is known only inside the loop that carries it.")
        if len(parts) == 1 and len(self._rounds.get(loop_id, ())) < 2:
            return ""  # the first round has been told nothing
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

    def lookup(self, path: str) -> Any:
        """The value at a path, whatever the block's `inputs` are; raises `UnknownPath`."""
        return self.run.lookup(self.run.canonical(path), self.visible, self.step.round, self.loops)

    def with_own(self, record: NodeRecord) -> Callable[[str], Any]:
        """A lookup that also knows this block's own result, not recorded yet."""
        parsed = cache(lambda: parse_json(record.output))
        block_id = self.block.id

        def lookup(path: str) -> Any:
            parts = self.run.canonical(path)
            if parts[0] == "blocks" and parts[1] == block_id:
                return _field(record, parts, parsed)
            return self.run.lookup(parts, self.visible, self.step.round, self.loops)

        return lookup

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
            raise BlockFailure(
                "unknown_path", f"Cannot fill in the text: {error}", is_retryable=False
            ) from None

    def inputs(self) -> dict[str, Any]:
        """The block's own `inputs`, looked up."""
        try:
            return {name: self.lookup(path) for name, path in (self.block.inputs or {}).items()}
        except UnknownPath as error:
            raise BlockFailure(
                "unknown_path", f"Cannot take in inputs: {error}", is_retryable=False
            ) from None

    def data(self) -> dict[str, Any]:
        """What a code block's `main(data)` is given."""
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
            "blocks": {block_id: self._block_data(block_id, record) for block_id, record in records.items()},
            "run": dict(run.run),
            "round": self.step.round,
            **dict(run.carried_for(self.loops)),
        }

    def _block_data(self, block_id: str, record: NodeRecord) -> dict[str, Any]:
        value = self.run.json_of(block_id, record)
        return {
            "output": record.output,
            "json": None if value is _NOT_JSON else value,
            "exit": record.exit_handle,
            "error": error_text(record),
        }

    def depended_outputs(self) -> dict[str, str]:
        """The outputs of the blocks that led here, by id."""
        records = self.run.records
        return {
            source: records[source].output
            for source in self.run.graph.sources(self.step.block_id)
            if source in records and records[source].status == "completed"
        }


def _field(record: NodeRecord, parts: Parts, parsed: Callable[[], Any]) -> Any:
    """The value at `blocks.<id>.<field>…` of a record."""
    field = parts[2]
    if field == "output":
        return record.output
    if field == "exit":
        return record.exit_handle
    if field == "error":
        return error_text(record)
    value = parsed()
    if value is _NOT_JSON:
        raise UnknownPath(f"'{'.'.join(parts)}': the output of '{parts[1]}' is not JSON.")
    return _walk(value, parts, 3)


def _writers(definition: WorkflowDefinition) -> dict[str, set[str]]:
    """The `workflow` blocks whose outputs go beside the run's inputs, with the names they write."""
    found: dict[str, set[str]] = {}
    for block in definition.blocks.values():
        if isinstance(block, WorkflowBlockDef):
            for target in block.outputs or ():
                root, _, rest = target.partition(".")
                if root in INPUT_ROOTS and rest:
                    found.setdefault(block.id, set()).add(output_parts(target)[0])
    return found


def _told(done: Mapping[str, NodeRecord], sources: Iterable[str]) -> dict[str, str]:
    """What one round tells later ones; a block that it did not run, or no round yet, is an empty text."""
    return {ref: done[ref].output if ref in done else "" for ref in sources}


def error_text(record: NodeRecord) -> str | None:
    """Why a node failed, in a sentence; None if it did not."""
    return str(record.error.get("message", "")) if record.error else None


def parse_json(text: str) -> Any:
    """Strict JSON as a value; `_NOT_JSON` for any other text."""
    if text.lstrip()[:1] not in _JSON_STARTS:
        return _NOT_JSON
    try:
        return storable_json(text)
    except ValueError:
        return _NOT_JSON


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
            raise UnknownPath(f"'{'.'.join(parts)}' is unknown: {_lacks(value, place, part)}")
    return value


def _lacks(value: Any, place: str, part: str) -> str:
    if isinstance(value, Mapping):
        known = ", ".join(sorted(map(str, value))[:10])
        return f"{place} has no '{part}'" + (f" (it has {known})." if known else " (it is empty).")
    if isinstance(value, list):
        return f"{place} is a list of {len(value)} and has no item '{part}'."
    return f"{place} is {'null' if value is None else 'a ' + type(value).__name__} and has no fields."
