"""What an LLM provider is: one chat request in, one answer or one `ProviderError` out.

Each module of this package is one provider, found by its name; importing the package loads none of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Self

from workflows_app.engine.results import plausible
from workflows_app.engine.values.paths import suggestion


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model; `seed_key` names the workflow and block for the demo provider."""

    model: str
    system_prompt: str
    prompt: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed_key: str = ""


@dataclass(frozen=True)
class ChatResponse:
    """A model's answer; what the provider did not report, or cannot mean, is None, never 0."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None
    model: str = ""
    latency_ms: float | None = None  # simulated, to be recorded instead of the measured one: demo only
    cost_usd: Decimal | float | None = None  # only where the provider itself knows

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            count = getattr(self, name)
            is_count = isinstance(count, int) and not isinstance(count, bool)
            object.__setattr__(self, name, plausible(count) if is_count else None)
        if self.cost_usd is not None and plausible(float(self.cost_usd)) is None:
            object.__setattr__(self, "cost_usd", None)


class ProviderError(Exception):
    """A call that gave no usable answer: why (`kind`), and whether the same call may work later."""

    def __init__(self, message: str, *, kind: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.retryable = retryable


@dataclass(frozen=True)
class ProviderAccess:
    """Which class serves a provider, where its server is, and the key that opens it."""

    kind: str
    base_url: str = ""
    key: str = field(default="", repr=False)


class Provider(ABC):
    """A source of model answers; a subclass in a file of this package is found by its `name`."""

    name: ClassVar[str]
    base_url: str = ""  # some servers have prices of their own
    _classes: ClassVar[dict[str, type[Provider]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            return
        known = Provider._classes.setdefault(cls.name, cls)
        if known is not cls:
            raise TypeError(f"Provider {cls.name!r} is already {known.__module__}.{known.__qualname__}.")

    @classmethod
    def connect(cls, access: ProviderAccess, **options: Any) -> Self:
        """Make one from what an administrator set and from the options that it has a use for: here none."""
        return cls()

    @abstractmethod
    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Answer the request, or raise `ProviderError`; cancelling the task aborts the call at once."""

    async def check(self) -> str:
        """Make sure that the provider can be called, and say so in a sentence; `ProviderError` if not."""
        return "Built in: nothing to connect to."

    async def aclose(self) -> None:
        """Give back what the provider holds open; it may be used again afterwards."""
        return


def provider_names() -> list[str]:
    """Every provider there is, by name."""
    _import_all()
    return sorted(Provider._classes)


def provider_class(name: str) -> type[Provider]:
    """The provider called `name`; `LookupError` with a suggestion if there is none."""
    if name not in Provider._classes:
        _import_all()
    if name in Provider._classes:
        return Provider._classes[name]
    hint = suggestion(name, sorted(Provider._classes), "there are")
    raise LookupError(f"Unknown provider {name!r}{hint}{'' if hint.endswith('?') else '.'}")


def make_provider(name: str, access: ProviderAccess | None = None, **options: Any) -> Provider:
    """The provider that `access` describes, else the built-in one called `name`; options are those of `connect`."""
    access = access or ProviderAccess(name)
    return provider_class(access.kind).connect(access, **options)


def _import_all() -> None:
    """Import this package's modules, so that each provider in it has registered itself."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
