"""What one block's assertions look at: a context, its text, and what was already worked out about it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from .documents import NotJson, parse_document
from .limits import CannotCheck, PatternBudget

_UNREAD: Any = object()


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


class Subject:
    """A text under judgement; whatever is derived from it is derived once, from any thread."""

    __slots__ = ("_document", "_fault", "_lock", "_notes", "_text", "budget", "context")

    def __init__(self, context: AssertionContext, budget: PatternBudget, text: str | None = None) -> None:
        self.context = context
        self.budget = budget
        self._text = text
        self._document: Any = _UNREAD
        self._fault: NotJson | CannotCheck | None = None
        self._notes: dict[str, Any] = {}
        self._lock = threading.RLock()

    @property
    def text(self) -> str:
        """The text to judge: the output, or its JSON text when it is not text."""
        if self._text is None:
            output = self.context.output
            self._text = output if isinstance(output, str) else _json_text(output)
        return self._text

    def document(self) -> Any:
        """Return the text parsed as strict JSON; raise NotJson, or CannotCheck when it is too deep or too large."""
        if self._document is _UNREAD:
            with self._lock:
                if self._document is _UNREAD and self._fault is None:
                    try:
                        self._document = parse_document(self.text)
                    except (NotJson, CannotCheck) as fault:
                        self._fault = fault
            if self._fault is not None:
                raise self._fault.with_traceback(None)
        return self._document

    def note(self, key: str, work_out: Any) -> Any:
        """Return what `work_out(text)` gave, working it out once under this key."""
        try:
            return self._notes[key]
        except KeyError:
            with self._lock:
                if key not in self._notes:
                    self._notes[key] = work_out(self.text)
                return self._notes[key]

    def part(self, key: str, extract: Any) -> Subject:
        """Return the subject for a part of this one, extracted once under this key."""
        notes = self._notes
        if key not in notes:
            with self._lock:
                if key not in notes:
                    notes[key] = Subject(self.context, self.budget, extract(self.document()))
        found: Subject = notes[key]
        return found


def _json_text(output: object) -> str:
    try:
        return json.dumps(output, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as fault:
        raise CannotCheck(f"The output is neither text nor JSON: {fault}.") from None
