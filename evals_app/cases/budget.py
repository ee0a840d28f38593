"""A cap on what a whole evaluation may cost, across cases that run at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass
class Budget:
    """What may be spent, what is spent, and what running calls may still cost."""

    cap_usd: Decimal | None = None
    spent_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)

    @property
    def is_spent(self) -> bool:
        return self.cap_usd is not None and self.spent_usd >= self.cap_usd

    def refusal(self, next_usd: Decimal) -> str | None:
        """Why a call of at most this cost may not start, if it may not."""
        if self.cap_usd is None or self.spent_usd + self.reserved_usd + next_usd <= self.cap_usd:
            return None
        known = f"${self.spent_usd:.6f} of the ${self.cap_usd:f} of --max-cost are spent"
        return f"{known}, ${self.reserved_usd:.6f} are in use, and the next call may cost ${next_usd:.6f}."
