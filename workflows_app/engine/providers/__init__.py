"""LLM providers: one file each, found by name; importing this loads none of them."""

from workflows_app.engine.providers.base import (
    ChatRequest,
    ChatResponse,
    Provider,
    ProviderError,
    ProviderSettings,
    make_provider,
    provider_class,
    provider_names,
)

__all__ = [
    "ChatRequest",
    "ChatResponse",
    "Provider",
    "ProviderError",
    "ProviderSettings",
    "make_provider",
    "provider_class",
    "provider_names",
]
