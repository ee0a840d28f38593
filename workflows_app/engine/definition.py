"""What a parsed workflow is: plain, immutable data that knows no YAML, no Django and no database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

DEFAULT_TIMEOUT_SECONDS = 300.0
CODE_TIMEOUT_SECONDS = 30.0
DEFAULT_EXIT = "default"
"""The exit of an edge that is taken when no other exit of its source matches."""


@dataclass(frozen=True, kw_only=True)
class SoulDef:
    """An agent's identity."""

    id: str
    role: str = ""
    name: str = ""
    system_prompt: str = ""
    provider: str = "demo"
    model_name: str = "demo-small"
    temperature: float | None = None
    max_tokens: int | None = None

    @cached_property
    def version(self) -> str:
        """Twelve hex digits over what changes the soul's answers."""
        identity = [
            self.role,
            self.system_prompt,
            self.provider,
            self.model_name,
            self.temperature,
            self.max_tokens,
        ]
        return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class RetryConfig:
    """How often a failed block is tried again, and after what pause."""

    max_attempts: int = 3
    backoff: str = "fixed"
    backoff_base_seconds: float = 1.0
    non_retryable_errors: tuple[str, ...] = ()

    def delay_seconds(self, attempt: int) -> float:
        """The pause after failed attempt number `attempt` (from 1)."""
        if self.backoff == "exponential":
            return float(self.backoff_base_seconds * 2 ** (attempt - 1))
        return self.backoff_base_seconds


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Caps on a block or a whole run; a missing one does not bind."""

    cost_cap_usd: float | None = None
    token_cap: int | None = None
    max_duration_seconds: float | None = None
    on_exceed: str = "fail"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One comparison of a value in the context."""

    eval_key: str
    operator: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class ConditionGroup:
    """Several conditions joined by `and` or `or`."""

    combinator: str = "and"
    conditions: tuple[Condition | ConditionGroup, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExitCase:
    """A named exit taken when its condition holds; the default one takes what is left."""

    exit: str
    when: Condition | ConditionGroup | None = None
    default: bool = False
    goto: str | None = None


@dataclass(frozen=True, kw_only=True)
class BaseBlockDef:
    """The keys every block may have."""

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()

    id: str
    assertions: list[dict[str, Any]] | None = None
    depends: tuple[str, ...] = ()
    inputs: Mapping[str, str] | None = None  # local name -> path
    outputs: Mapping[str, str] | None = None
    error_route: str | None = None
    retry_config: RetryConfig | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    limits: Limits | None = None
    exits: tuple[str, ...] = ()
    exit_conditions: tuple[ExitCase, ...] = ()  # choose the exit from the block's own output
    routes: tuple[ExitCase, ...] = ()  # choose the exit and its target in one place
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class LlmBlockDef(BaseBlockDef):
    """One call of a soul."""

    type = "llm"
    aliases = ("linear",)

    soul_ref: str
    prompt: str | None = None


@dataclass(frozen=True, kw_only=True)
class CodeBlockDef(BaseBlockDef):
    """A Python function in its own process."""

    type = "code"

    code: str
    allowed_imports: tuple[str, ...] = ()
    timeout_seconds: float = CODE_TIMEOUT_SECONDS


@dataclass(frozen=True, kw_only=True)
class GateBlockDef(BaseBlockDef):
    """Checks another block's output and routes `pass` or `fail`."""

    type = "gate"

    eval_key: str
    pass_target: str | None = None  # YAML key `pass`
    fail_target: str | None = None  # YAML key `fail`
    soul_ref: str | None = None
    extract_field: str | None = None
    threshold: float | None = None


@dataclass(frozen=True, kw_only=True)
class CarryContext:
    """What one round of a loop passes on to the next."""

    enabled: bool = True
    mode: str = "last"
    source_blocks: tuple[str, ...] = ()
    inject_as: str = "previous_round"


@dataclass(frozen=True, kw_only=True)
class LoopBlockDef(BaseBlockDef):
    """Runs its inner blocks in order, round after round."""

    type = "loop"

    inner_block_refs: tuple[str, ...]
    max_rounds: int = 5
    break_condition: Condition | ConditionGroup | None = None
    break_on_exit: str | None = None
    retry_on_exit: str | None = None
    carry_context: CarryContext | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowBlockDef(BaseBlockDef):
    """A child run of another workflow."""

    type = "workflow"

    workflow_ref: str
    max_depth: int = 5
    on_error: str = "raise"


@dataclass(frozen=True, kw_only=True)
class DispatchExit:
    """One branch of a dispatch block."""

    id: str
    soul_ref: str
    task: str
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class DispatchBlockDef(BaseBlockDef):
    """Several souls at the same time, joined."""

    type = "dispatch"

    branches: tuple[DispatchExit, ...]  # YAML key `exits`


BLOCK_DEFS: dict[str, type[BaseBlockDef]] = {
    name: definition
    for definition in (
        LlmBlockDef,
        CodeBlockDef,
        GateBlockDef,
        LoopBlockDef,
        WorkflowBlockDef,
        DispatchBlockDef,
    )
    for name in (definition.type, *definition.aliases)
}


@dataclass(frozen=True, kw_only=True)
class Edge:
    """`target` may start once `source` left by `exit` (any exit if None)."""

    source: str
    target: str
    exit: str | None = None
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class InputField:
    """One declared input of a workflow."""

    name: str
    type: str = "any"
    required: bool = False
    default: Any = None
    has_default: bool = False
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputField:
    """One declared output of a workflow and the path it comes from."""

    name: str
    source: str
    type: str = "any"


@dataclass(frozen=True, kw_only=True)
class EvalCase:
    """One offline case: inputs, frozen outputs, and what is expected of which block."""

    id: str
    description: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    fixtures: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    include_block_assertions: bool = False
    repeats: int = 1
    min_pass: int | None = None
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class EvalSuite:
    """The `eval:` section."""

    threshold: float = 1.0
    cases: tuple[EvalCase, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EvidenceSettings:
    """The `evidence:` section: how readily a change is called a regression."""

    sensitivity: str = "normal"
    min_runs: int = 20
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkflowDefinition:
    """One valid document."""

    name: str
    slug: str | None
    blocks: Mapping[str, BaseBlockDef]
    edges: tuple[Edge, ...]
    entry: str | None = None
    enabled: bool = True
    souls: Mapping[str, SoulDef] = field(default_factory=dict)
    inputs: tuple[InputField, ...] | None = None  # None: any JSON object
    outputs: tuple[OutputField, ...] = ()
    limits: Limits | None = None
    eval: EvalSuite | None = None
    evidence: EvidenceSettings = EvidenceSettings()
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inner_blocks(self) -> Mapping[str, str]:
        """Blocks that run only inside a loop, with the loop's id."""
        return {
            inner: block.id
            for block in self.blocks.values()
            if isinstance(block, LoopBlockDef)
            for inner in block.inner_block_refs
        }

    @property
    def assertions_by_block(self) -> dict[str, list[dict[str, Any]]]:
        """The assertions of each block that has some."""
        return {block.id: block.assertions for block in self.blocks.values() if block.assertions}

    @property
    def soul_refs(self) -> frozenset[str]:
        """Every soul the blocks name."""
        return frozenset(ref for block in self.blocks.values() for ref in souls_of(block))

    @property
    def has_code(self) -> bool:
        """Whether saving this needs the permission for code."""
        return any(isinstance(block, CodeBlockDef) for block in self.blocks.values())


def souls_of(block: BaseBlockDef) -> tuple[str, ...]:
    """The souls one block asks."""
    if isinstance(block, (LlmBlockDef, GateBlockDef)):
        return (block.soul_ref,) if block.soul_ref else ()
    if isinstance(block, DispatchBlockDef):
        return tuple(branch.soul_ref for branch in block.branches)
    return ()


@dataclass(frozen=True)
class Fault:
    """One error in a document: its place, and how to correct it."""

    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        place = f"{self.path} ({line})" if self.path and line else self.path or line
        return f"{place}: {self.message}" if place else self.message

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "message": self.message}


class InvalidDocument(Exception):
    """Raised with every error of a document."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults
