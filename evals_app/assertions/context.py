"""What one block's assertions check: its context, its text, and what was already derived from it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from evals_app.assertions.limits import CannotCheck, PatternBudget
from evals_app.assertions.matching.json_documents import NotJson, parse_document


class FinishedNode(Protocol):
    """A finished node as assertions see it: a row of the database, or a node of an eval case."""

    @property
    def output(self) -> Any: ...
    @property
    def prompt(self) -> str: ...
    @property
    def prompt_hash(self) -> str: ...
    @property
    def soul_id(self) -> str: ...
    @property
    def soul_version(self) -> str: ...
    @property
    def node_id(self) -> str: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def total_tokens(self) -> int | None: ...
    @property
    def latency_ms(self) -> float | None: ...


@dataclass(slots=True)
class AssertionContext:
    """What a block produced and what it cost; only the output is required."""

    output: Any
    prompt: str | None = None
    prompt_hash: str | None = None
    soul_id: str | None = None
    soul_version: str | None = None
    block_id: str | None = None
    block_type: str | None = None
    cost_usd: float | None = None
    total_tokens: int | None = None
    latency_ms: float | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    workflow_id: str | None = None

    @classmethod
    def for_node(
        cls,
        node: FinishedNode,
        *,
        block_type: str,
        variables: dict[str, Any],
        run_id: str | None,
        workflow_id: str,
    ) -> AssertionContext:
        """The only way from a node to its context, so that no caller leaves a field out."""
        return cls(
            output=node.output,
            prompt=node.prompt,
            prompt_hash=node.prompt_hash,
            soul_id=node.soul_id,
            soul_version=node.soul_version,
            block_id=node.node_id,
            block_type=block_type,
            cost_usd=node.cost_usd,
            total_tokens=node.total_tokens,
            latency_ms=node.latency_ms,
            variables=variables,
            run_id=run_id,
            workflow_id=workflow_id,
        )


class CheckedOutput:
    """The text that assertions check; whatever is derived from it is derived once, from any thread."""

    __slots__ = ("_derived", "_lock", "_text", "budget", "context")

    def __init__(self, context: AssertionContext, budget: PatternBudget, text: str | None = None) -> None:
        self.context = context
        self.budget = budget
        self._text = text
        self._derived: dict[str, Any] = {}
        self._lock = threading.RLock()

    @property
    def text(self) -> str:
        """The output, or its JSON text when it is not text."""
        if self._text is None:
            output = self.context.output
            try:
                is_text = isinstance(output, str)
                self._text = output if is_text else json.dumps(output, ensure_ascii=False, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise CannotCheck(f"The output is neither text nor JSON: {error}.") from None
        return self._text

    def document(self) -> Any:
        """Return the text parsed as strict JSON; raise NotJson, or CannotCheck when it is too deep or too large."""
        found = self._once("document", self._parse)
        if isinstance(found, NotJson | CannotCheck):
            raise found.with_traceback(None)
        return found

    def _parse(self) -> Any:
        try:
            return parse_document(self.text)
        except (NotJson, CannotCheck) as error:
            return error

    def derived(self, key: str, derive: Callable[[str], Any]) -> Any:
        """Return `derive(text)`, computed once under this key."""
        return self._once(key, lambda: derive(self.text))

    def part(self, key: str, extract: Callable[[Any], str]) -> CheckedOutput:
        """Return a part of the JSON as an output of its own, extracted once under this key."""
        found: CheckedOutput = self._once(
            key, lambda: CheckedOutput(self.context, self.budget, extract(self.document()))
        )
        return found

    def _once(self, key: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._derived:
                self._derived[key] = make()
            return self._derived[key]
