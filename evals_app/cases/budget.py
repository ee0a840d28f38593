"""A cap on what a whole evaluation may cost, kept before each call and across cases that run at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from workflows_app.engine.definition import WorkflowBlockDef
from workflows_app.engine.limits import CallEstimate, Spend
from workflows_app.engine.providers.prices import max_cost
from workflows_app.engine.results import BlockFailure

OVER_BUDGET = "over_budget"


@dataclass
class Budget:
    """What may be spent, what is, and what calls under way may still take."""

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


@dataclass
class BudgetedSpend(Spend):
    """The ledger of one case, which also pays into the budget of the evaluation."""

    budget: Budget = field(default_factory=Budget)
    _reserved: dict[str, list[Decimal]] = field(default_factory=dict, init=False)

    def check_call(self, block_id: str, call: CallEstimate) -> list[str]:
        """Refuse a call that does not fit under the run's caps or the budget."""
        warnings = super().check_call(block_id, call)
        if self.budget.cap_usd is not None:
            self._reserve(block_id, call)
        return warnings

    def _reserve(self, block_id: str, call: CallEstimate) -> None:
        cost = max_cost(
            call.model, call.prompt_tokens, call.max_tokens, overrides=self.overrides, base_url=call.base_url
        )
        if cost is None:
            problem = f"--max-cost cannot be kept: the price of model '{call.model}' is unknown."
            raise BlockFailure(OVER_BUDGET, problem, is_retryable=False)
        refusal = self.budget.refusal(cost)
        if refusal is not None:
            raise BlockFailure(OVER_BUDGET, refusal, is_retryable=False)
        self._reserved.setdefault(block_id, []).append(cost)
        self.budget.reserved_usd += cost

    def add(self, block_id: str, cost_usd: Decimal | float | None, tokens: int | None) -> None:
        """Note what a call took and give back what was reserved for it."""
        super().add(block_id, cost_usd, tokens)
        if isinstance(self.definition.blocks[block_id], WorkflowBlockDef):
            return  # the child run has paid for itself
        waiting = self._reserved.get(block_id)
        if waiting:
            self.budget.reserved_usd -= waiting.pop()
        self.budget.spent_usd += Decimal(str(cost_usd or 0))

    def close(self) -> None:
        """Give back what calls that failed had reserved."""
        for waiting in self._reserved.values():
            self.budget.reserved_usd -= sum(waiting, Decimal(0))
        self._reserved.clear()
