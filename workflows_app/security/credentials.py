"""Provider keys, prices and what must never be shown, read from the tables and the environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings

from workflows_app.engine.providers import ProviderAccess
from workflows_app.engine.redaction import Redactor, use_in_logs
from workflows_app.models import PriceOverride, Provider, Run
from workflows_app.security import secrets

# Long enough to cost nothing per block, short enough that a changed key is used at once.
KEPT_SECONDS = 5.0


class _Known(NamedTuple):
    """What the tables held at one moment."""

    providers: Mapping[str, ProviderAccess]
    prices: Mapping[str, Mapping[str, Decimal]]
    redactor: Redactor


def forget() -> None:
    """Read the tables again at the next call."""
    _read.cache_clear()


def encrypt_key(key: str) -> str:
    return secrets.encrypt(key, _secret_keys())


def provider_accesses() -> Mapping[str, ProviderAccess]:
    """How to reach each provider that has an address or a key, by name."""
    return _current().providers


def access_of(row: Provider) -> ProviderAccess:
    """How to reach one provider; a row without a key gets the environment's at the environment's address only."""
    address = row.base_url or settings.OPENAI_BASE_URL
    if row.encrypted_key:
        key = secrets.decrypt(row.encrypted_key, _secret_keys())
    else:
        is_its_address = address.rstrip("/") == settings.OPENAI_BASE_URL.rstrip("/")
        key = settings.OPENAI_API_KEY if is_its_address else ""
    return ProviderAccess(row.kind, address, key)


def price_overrides() -> Mapping[str, Mapping[str, Decimal]]:
    """Dollars per million tokens by model, where the admin differs from the price table."""
    return _current().prices


def redactor() -> Redactor:
    """Takes every stored key, and what looks like one, out of a text."""
    return _current().redactor


def shown_inputs(run: Run) -> dict[str, Any]:
    """A run's inputs for people to see; the run itself, and a repeat of it, needs them unchanged."""
    shown: dict[str, Any] = redactor().redact_json(run.inputs)
    return shown


def _secret_keys() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _current() -> _Known:
    return _read(time.monotonic() // KEPT_SECONDS)


@lru_cache(maxsize=1)
def _read(moment: float) -> _Known:
    providers = {"openai": ProviderAccess("openai", settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY)}
    for row in Provider.objects.filter(enabled=True):
        providers[row.name] = access_of(row)
    prices: dict[str, Mapping[str, Any]] = {
        row.model_name: {
            "input_per_million": row.input_per_million_usd,
            "output_per_million": row.output_per_million_usd,
        }
        for row in PriceOverride.objects.all()
    }
    hidden = [access.key for access in providers.values() if access.key]
    redactor = Redactor([*hidden, settings.SECRET_KEY])
    use_in_logs(redactor)
    return _Known(providers, prices, redactor)
