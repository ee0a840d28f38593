"""What a run and its blocks have spent, and whether the next call still fits under their caps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from workflows_app.engine.definition import Limits, WorkflowDefinition
from workflows_app.engine.providers.prices import Overrides, call_cost
from workflows_app.engine.results import BlockFailure


@dataclass
class _Account:
    """What one block, with everything inside it, or the whole run has spent."""

    name: str
    limits: Limits
    clock: Callable[[], float]
    cost_usd: Decimal = Decimal(0)
    tokens: int = 0
    started: float | None = None

    def remaining_seconds(self) -> float | None:
        """The time left, from the first time anyone asked; None without a cap."""
        if self.limits.max_duration_seconds is None:
            return None
        if self.started is None:
            self.started = self.clock()
        return self.limits.max_duration_seconds - (self.clock() - self.started)


@dataclass(frozen=True)
class CallEstimate:
    """What is known of a call before it is made."""

    model: str
    prompt_tokens: int
    max_tokens: int | None
    base_url: str = ""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + (self.max_tokens or 0)

    def max_cost(self, overrides: Overrides | None = None) -> Decimal | None:
        """The most it may cost: without `max_tokens`, its prompt; None where the model has no known price."""
        most = self.max_tokens or 0
        return call_cost(self.model, self.prompt_tokens, most, overrides=overrides, base_url=self.base_url)


@dataclass
class Spend:
    """The ledger of one run. A call starts only if what is spent and its known maximum fit under every cap."""

    definition: WorkflowDefinition
    overrides: Overrides | None = None
    elapsed_seconds: float = 0.0  # by which a resumed run is older than this ledger
    clock: Callable[[], float] = time.monotonic
    _payers: dict[str, list[_Account]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        blocks = self.definition.blocks
        accounts = {
            block.id: _Account(f"block '{block.id}'", block.limits, self.clock)
            for block in blocks.values()
            if block.limits is not None
        }
        if self.definition.limits is not None:
            started = self.clock() - self.elapsed_seconds
            # The run pays for every block; no block has an empty name.
            accounts[""] = _Account("the run", self.definition.limits, self.clock, started=started)
        loops = self.definition.inner_blocks if accounts else {}
        for block_id in blocks if accounts else ():
            chain = [block_id]
            while chain[-1] in loops:  # a loop pays for what is inside it
                chain.append(loops[chain[-1]])
            self._payers[block_id] = [accounts[one] for one in (*chain, "") if one in accounts]

    def add(self, block_id: str, cost_usd: Decimal | float | None, tokens: int | None) -> None:
        """Note what a call took; also how a resumed run learns what its finished nodes took."""
        for account in self._payers.get(block_id, ()):
            account.cost_usd += Decimal(str(cost_usd or 0))
            account.tokens += tokens or 0

    def check_start(self, block_id: str) -> list[str]:
        """Refuse a block whose time is over; gives the warnings of caps that only warn."""
        return self._check(block_id, _time_problems)

    def check_call(self, block_id: str, call: CallEstimate) -> list[str]:
        """Refuse a call that does not fit; gives the warnings of caps that only warn."""
        return self._check(block_id, lambda account: self._call_problems(account, call))

    def check_child(self, block_id: str) -> list[str]:
        """Refuse a child run once a cap is used up: what it will take is not known."""
        return self._check(block_id, _used_up)

    def remaining_seconds(self, block_id: str) -> tuple[float, str] | None:
        """The least time left under a cap that fails, and whose cap it is."""
        left = [
            (seconds, account.name)
            for account in self._payers.get(block_id, ())
            if account.limits.on_exceed == "fail" and (seconds := account.remaining_seconds()) is not None
        ]
        return min(left, default=None)

    def _check(self, block_id: str, problems: Callable[[_Account], Iterator[str]]) -> list[str]:
        warnings = []
        for account in self._payers.get(block_id, ()):
            for problem in problems(account):
                sentence = f"Limit of {account.name}: {problem}."
                if account.limits.on_exceed != "warn":
                    raise BlockFailure("limit", sentence)
                warnings.append(sentence)
        return warnings

    def _call_problems(self, account: _Account, call: CallEstimate) -> Iterator[str]:
        limits = account.limits
        if limits.cost_cap_usd is not None:
            cap, cost = Decimal(str(limits.cost_cap_usd)), call.max_cost(self.overrides)
            if cost is None:
                # Whatever on_exceed says: a cap that cannot be kept must not look as if it were.
                raise BlockFailure(
                    "limit",
                    f"The cost cap of {account.name} cannot be kept: the price of model '{call.model}' is unknown. "
                    "Add a price for it, or use token_cap instead.",
                )
            if account.cost_usd + cost > cap:
                spent = f"${account.cost_usd:.6f} of the ${cap:f} it may cost are spent"
                yield f"{spent}, and the next call may cost ${cost:.6f}"
        if limits.token_cap is not None and account.tokens + call.tokens > limits.token_cap:
            spent = f"{account.tokens} of the {limits.token_cap} tokens it may use are used"
            yield f"{spent}, and the next call may take {call.tokens}"
        yield from _time_problems(account)


def _time_problems(account: _Account) -> Iterator[str]:
    left = account.remaining_seconds()
    if left is not None and left <= 0:
        yield f"the {account.limits.max_duration_seconds:g} seconds it may take are over"


def _used_up(account: _Account) -> Iterator[str]:
    limits = account.limits
    if limits.cost_cap_usd is not None and account.cost_usd >= Decimal(str(limits.cost_cap_usd)):
        yield f"the ${limits.cost_cap_usd:g} it may cost are spent"
    if limits.token_cap is not None and account.tokens >= limits.token_cap:
        yield f"the {limits.token_cap} tokens it may use are used"
    yield from _time_problems(account)
