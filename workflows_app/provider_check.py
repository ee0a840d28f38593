"""Whether a provider can be called as it is set up, in one sentence without secrets."""

from __future__ import annotations

import asyncio

from asgiref.sync import async_to_sync
from django.conf import settings

from workflows_app import credentials
from workflows_app.engine.providers import ProviderError, ProviderSettings, make_provider
from workflows_app.models import Provider
from workflows_app.secrets import SecretUnreadableError

CHECK_SECONDS = 20.0


def check_provider(row: Provider) -> tuple[bool, str]:
    """Whether it answers, and what it said."""
    try:
        access = credentials.access_of(row)
        sentence = async_to_sync(_check)(access)
    except (ProviderError, LookupError, ValueError, SecretUnreadableError) as fault:
        return False, credentials.redactor().redact(str(fault))
    except TimeoutError:
        return False, f"No answer within {CHECK_SECONDS:.0f} seconds."
    return True, credentials.redactor().redact(sentence)


async def _check(access: credentials.ProviderAccess) -> str:
    provider = make_provider(
        access.kind,
        ProviderSettings(
            base_url=access.base_url,
            api_key=access.key,
            timeout_seconds=CHECK_SECONDS,
            allow_private=settings.RUNSIGHT_ALLOW_PRIVATE_PROVIDERS,
        ),
    )
    try:
        return await asyncio.wait_for(provider.check(), CHECK_SECONDS)
    finally:
        await provider.aclose()
