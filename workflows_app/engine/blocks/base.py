"""What every block type has in common: how it is found, and what it works with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from workflows_app.engine.definition import BaseBlockDef, SoulDef, WorkflowDefinition
from workflows_app.engine.limits import Spend
from workflows_app.engine.providers import Provider
from workflows_app.engine.providers.prices import Overrides
from workflows_app.engine.records import Step
from workflows_app.engine.results import BlockResult, Tokens
from workflows_app.engine.values.context import BlockContext

Def = TypeVar("Def", bound=BaseBlockDef)
FREE = Decimal(0)  # a block that calls no model costs nothing, which is not the same as unknown


@dataclass(frozen=True, kw_only=True)
class ChildResult:
    """How a child run ended."""

    run_id: str
    status: str
    outputs: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    cost_usd: Decimal | float | None = None
    tokens: Tokens | None = None


RunChild = Callable[[str, Mapping[str, Any], int], Awaitable[ChildResult]]
"""Starts a child run (reference, inputs, most depth) and waits for its end; cancelling the call cancels the child."""


class CodeRunner(Protocol):
    """What a code block needs of a sandbox."""

    def run(
        self, code: str, data: dict[str, Any], *, timeout_seconds: float, cancelled: Callable[[], bool]
    ) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What the executor lends to the blocks of one run."""

    spend: Spend
    souls: Mapping[str, SoulDef] = field(default_factory=dict)
    provider: Callable[[str], Provider] | None = None
    sandbox: CodeRunner | None = None
    price_overrides: Overrides | None = None
    run_child: RunChild | None = None
    is_cancelled: Callable[[], bool] = bool  # bool() is False
    threads: Executor | None = None  # for code; None is the event loop's own pool


@dataclass(frozen=True)
class Call:
    """One execution of a block: which, of what, with what it sees and may use."""

    step: Step
    definition: WorkflowDefinition
    context: BlockContext
    tools: Tools
    warnings: list[str] = field(default_factory=list)


class Block(ABC, Generic[Def]):
    """A type of block; a subclass with a `type` is found by it, and a second of the name is refused."""

    type: ClassVar[str]
    keeps_own_time: ClassVar[bool] = False  # whether the type enforces timeout_seconds by itself

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.type in BLOCKS:
            raise TypeError(f"Block type {cls.type!r} is already {BLOCKS[cls.type].__qualname__}.")
        BLOCKS[cls.type] = cls

    def __init__(self, call: Call) -> None:
        self.call = call
        self.step = call.step
        self.context = call.context
        self.block = cast("Def", call.context.block)
        self.tools = call.tools

    @abstractmethod
    async def run(self, timeout_seconds: float) -> BlockResult:
        """Do the work, or raise `BlockFailure`."""


BLOCKS: dict[str, type[Block[Any]]] = {}
