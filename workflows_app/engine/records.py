"""What goes into a plan and what comes out of it: finished nodes, and nodes to run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from workflows_app.engine.json_text import storable_json

Key = tuple[str, int]
NOT_JSON: Final = object()
_JSON_STARTS: Final = frozenset('{["-0123456789tfn')


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """What became of one attempt at a node; only the last attempt of a node and iteration counts."""

    node_id: str
    iteration: int = 1
    attempt: int = 1
    status: str = "completed"  # or failed, skipped, cancelled
    output: str = ""
    exit_handle: str | None = None
    error: dict[str, Any] | None = None
    eval_passed: bool | None = None
    eval_score: float | None = None
    will_retry: bool = False

    @property
    def key(self) -> Key:
        return (self.node_id, self.iteration)

    @property
    def is_final(self) -> bool:
        """Whether the node is done with; a cancelled attempt was interrupted and may be made again."""
        return self.status == "completed" or (self.status == "failed" and not self.will_retry)

    @property
    def error_message(self) -> str | None:
        """Why the node failed, in a sentence; None if it did not."""
        return str(self.error.get("message", "")) if self.error else None

    @cached_property
    def json(self) -> Any:
        """The value of an output that is strict JSON, parsed when first asked for; else `NOT_JSON`."""
        if self.output.lstrip()[:1] not in _JSON_STARTS:
            return NOT_JSON
        try:
            return storable_json(self.output)
        except ValueError:
            return NOT_JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node to run now."""

    node_id: str
    block_id: str
    kind: str
    iteration: int = 1  # counts this block's executions in the run
    attempt: int = 1
    round: int | None = None  # of the innermost loop around it
    branch: str | None = None  # of a dispatch block
    parts: tuple[NodeRecord, ...] = ()  # what a loop or dispatch node collects

    @property
    def key(self) -> Key:
        return (self.node_id, self.iteration)
