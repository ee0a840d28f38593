"""Costs: exact, never 0 for what is unknown, and an administrator's price goes first."""

import subprocess
import sys
from decimal import Decimal

import pytest

from workflows_app.engine.limits import CallEstimate
from workflows_app.engine.providers.prices import (
    call_cost,
    estimate_tokens,
    has_price,
    price_table_version,
)

OVERRIDES = {
    "house-model": {"input_per_million": "2", "output_per_million": 4.5},
    "gpt-4o-mini": {"input_per_million": 1, "output_per_million": 1, "cached_per_million": "0.5"},
    "free": {"input_per_million": 0, "output_per_million": 0},
}


def test_a_known_model_costs_what_the_table_says() -> None:
    assert call_cost("gpt-4o-mini", 1000, 100) == Decimal("0.00021")
    assert call_cost("gpt-4o-mini", 1000, 100, 200) == Decimal("0.000195")
    assert call_cost("gpt-4o-mini", 1000, 100, base_url="https://api.openai.com/v1") == Decimal("0.00021")
    assert call_cost("gpt-4o-mini", 1000, 100, base_url="http://127.0.0.1:8000/v1") == Decimal("0.00021")


@pytest.mark.parametrize("model", ["no-such-model", "", "llama3.1:8b"])
def test_an_unknown_model_has_no_cost_rather_than_none_at_all(model: str) -> None:
    assert call_cost(model, 1000, 100) is None
    assert CallEstimate(model, 1000, 100).max_cost() is None
    assert not has_price(model)


def test_tokens_that_were_not_reported_have_no_cost() -> None:
    assert call_cost("gpt-4o-mini", None, 100) is None
    assert call_cost("gpt-4o-mini", 100, None) is None
    assert call_cost("gpt-4o-mini", 0, 0) == 0


def test_overrides_go_first() -> None:
    assert call_cost("house-model", 1_000_000, 1_000_000, overrides=OVERRIDES) == Decimal("6.5")
    assert call_cost("gpt-4o-mini", 100, 0, 50, overrides=OVERRIDES) == Decimal("0.000075")
    assert call_cost("free", 100, 100, overrides=OVERRIDES) == 0
    assert has_price("free", overrides=OVERRIDES)
    assert call_cost("house-model", 1, 1) is None


@pytest.mark.parametrize("bad", ["x", -1, float("nan"), float("inf"), None])
def test_a_bad_override_says_so(bad: object) -> None:
    with pytest.raises(ValueError, match="no price"):
        call_cost("m", 1, 1, overrides={"m": {"input_per_million": bad, "output_per_million": 1}})


def test_more_cached_tokens_than_there_are_cost_no_less_than_all_cached() -> None:
    assert call_cost("gpt-4o-mini", 100, 0, 500) == call_cost("gpt-4o-mini", 100, 0, 100)
    assert call_cost("demo-small", 100, 0, 500) == call_cost("demo-small", 100, 0, 100)


def test_the_demo_models_have_prices() -> None:
    small, large = call_cost("demo-small", 1000, 100), call_cost("demo-large", 1000, 100)
    assert small is not None
    assert large is not None
    assert 0 < small < large


def test_the_maximum_counts_every_token_the_answer_may_have() -> None:
    assert CallEstimate("demo-small", 1000, 100).max_cost() == call_cost("demo-small", 1000, 100)
    assert CallEstimate("demo-small", 1000, None).max_cost() == call_cost("demo-small", 1000, 0)


def test_the_version_says_which_prices_were_used() -> None:
    assert price_table_version("gpt-4o").startswith("genai-prices ")
    assert price_table_version("demo-small") == "demo"
    assert price_table_version("house-model", overrides=OVERRIDES) == "override"


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "ああああ", "\ud800")] == [
        0,
        1,
        1,
        2,
        3,
        1,
    ]


def test_importing_providers_loads_nothing_heavy() -> None:
    code = (
        "import sys, workflows_app.engine.providers as p, workflows_app.engine.redaction, workflows_app.security.secrets;"
        "p.provider_names();"
        "print([name for name in ('django', 'httpx2', 'genai_prices', 'cryptography') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
