"""What a call costs: admin overrides first, then the demo's prices, then the maintained price table; else None."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from typing import Any

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens; without a price of their own, cached tokens cost what the others do."""

    input_per_million: Decimal
    output_per_million: Decimal
    cached_per_million: Decimal | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Price:
        """A price as an administrator's table gives it: numbers or texts, `cached_per_million` optional."""
        cached = values.get("cached_per_million")
        return cls(
            _dollars(values["input_per_million"]),
            _dollars(values["output_per_million"]),
            None if cached is None else _dollars(cached),
        )

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> Decimal:
        """The cost of one call; cached tokens are part of the prompt's."""
        cached_price = self.input_per_million if self.cached_per_million is None else self.cached_per_million
        total = (
            (prompt_tokens - cached_tokens) * self.input_per_million
            + cached_tokens * cached_price
            + completion_tokens * self.output_per_million
        )
        return total / _MILLION


DEMO_PRICES = {
    "demo-small": Price(Decimal("0.40"), Decimal("1.60"), Decimal("0.10")),
    "demo-large": Price(Decimal("3.00"), Decimal("12.00"), Decimal("0.75")),
}
Overrides = Mapping[str, Mapping[str, Any]]


def call_cost(
    model: str,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    cached_tokens: int | None = None,
    *,
    overrides: Overrides | None = None,
    base_url: str = "",
) -> Decimal | None:
    """What a call cost in dollars; None where the model has no known price or the server reported no tokens."""
    if prompt_tokens is None or completion_tokens is None:
        return None
    cached = min(cached_tokens or 0, prompt_tokens)
    own = (overrides or {}).get(model)
    price = DEMO_PRICES.get(model) if own is None else Price.from_mapping(own)
    if price is not None:
        return price.cost(prompt_tokens, completion_tokens, cached)
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens, cache_read_tokens=cached)
    # By the server's address if the table knows it, else by the model's name alone.
    for url in (base_url, None) if base_url else (None,):
        with suppress(LookupError):
            return Decimal(calc_price(usage, model, provider_api_url=url).total_price)
    return None


def has_price(model: str, *, overrides: Overrides | None = None, base_url: str = "") -> bool:
    """Whether a cap on cost can be kept for this model."""
    return call_cost(model, 1, 1, overrides=overrides, base_url=base_url) is not None


def price_table_version(model: str = "", *, overrides: Overrides | None = None) -> str:
    """Which prices a cost was computed with, to be stored with it."""
    if overrides and model in overrides:
        return "override"
    if model in DEMO_PRICES:
        return "demo"
    return f"genai-prices {version('genai-prices')}"


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a text is: four bytes each, so that scripts with long encodings count for more."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (size + 3) // 4


def _dollars(value: Any) -> Decimal:
    """A price as a finite number that is not negative."""
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{value!r} is no price; give dollars per million tokens, such as 0.15.")
    return amount
