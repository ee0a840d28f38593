"""What executing one block yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeVar

Number = TypeVar("Number", int, float, Decimal)
# Far more than any call takes, and far less than 64 bits, so that totals over millions of them can be stored.
LARGEST_FIGURE: Final = 10**12


def plausible(figure: Number | None) -> Number | None:
    """A reported figure; None for one that nobody can mean and no database can add up: negative, NaN, or endless."""
    return figure if figure is not None and 0 <= figure <= LARGEST_FIGURE else None


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokens of one node, not running totals."""

    prompt: int = 0
    completion: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    def to_dict(self) -> dict[str, int]:
        return {"prompt": self.prompt, "completion": self.completion, "total": self.total}


@dataclass(frozen=True, kw_only=True)
class BlockResult:
    """A finished block: its text and what it took."""

    output: str
    exit_handle: str | None = None
    latency_ms: float | None = None  # None: the caller measured it
    cost_usd: Decimal | None = None
    tokens: Tokens | None = None
    soul_id: str = ""
    soul_version: str = ""
    prompt: str = ""
    prompt_hash: str = ""
    error: dict[str, Any] | None = None  # what went wrong inside and was caught
    details: dict[str, Any] = field(default_factory=dict)  # model, token classes, price table, stdout …

    def facts(self) -> dict[str, Any]:
        """What the row of a node keeps of it, by column."""
        names = ("output", "latency_ms", "soul_id", "soul_version", "prompt", "prompt_hash")
        return {name: getattr(self, name) for name in names} | {
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
            "tokens": self.tokens.to_dict() if self.tokens else None,
        }


class BlockFailure(Exception):
    """A block that could not finish, which is final unless it says that trying again may help.

    `kind` is what `non_retryable_errors` matches.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        is_retryable: bool = False,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.is_retryable = is_retryable
        self.details = details or {}  # what code printed before it failed

    def to_dict(self) -> dict[str, str]:
        return {"type": self.kind, "message": self.message}
