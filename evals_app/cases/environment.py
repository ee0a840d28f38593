"""What executed cases need: providers, souls, other workflows and a sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evals_app.cases.document import read_document
from workflows_app.engine.definition import InvalidDocument, SoulDef, WorkflowDefinition
from workflows_app.engine.providers import Provider, ProviderAccess, make_provider

if TYPE_CHECKING:
    from workflows_app.engine.providers.prices import Overrides
    from workflows_app.engine.sandbox.client import Sandbox


def provider_from_environment(name: str) -> Provider:
    """A provider without any database: `demo` is built in, `openai` takes its key and address from the environment."""
    if name != "openai":
        return make_provider(name)
    key, address = os.environ.get("OPENAI_API_KEY", ""), os.environ.get("OPENAI_BASE_URL", "")
    if not key and not address:
        raise LookupError("OPENAI_API_KEY is not set; set it, or give the block a fixture.")
    # Whoever starts the program chose the address, so one on the same machine is what they want.
    return make_provider(name, ProviderAccess(name, address, key), allow_private=True)


def workflows_beside(path: Path) -> Callable[[str], WorkflowDefinition | None]:
    """Find another workflow as a file in the same folder."""

    def find(slug: str) -> WorkflowDefinition | None:
        for suffix in (".yaml", ".yml"):
            file = path.with_name(slug + suffix)
            if file.is_file():
                try:
                    return read_document(file.read_bytes(), name=slug).definition
                except InvalidDocument as invalid:
                    raise LookupError(f"{file.name} is not valid: {invalid.faults[0]}") from None
        return None

    return find


@dataclass
class CaseEnvironment:
    """Providers stay open between cases; `close` ends what was opened."""

    make_provider: Callable[[str], Provider] = provider_from_environment
    find_workflow: Callable[[str], WorkflowDefinition | None] = lambda slug: None
    souls: Mapping[str, SoulDef] = field(default_factory=dict)
    price_overrides: Overrides | None = None
    _providers: dict[str, Provider] = field(default_factory=dict, init=False)
    _sandbox: Sandbox | None = field(default=None, init=False)

    def provider(self, name: str) -> Provider:
        """The provider of that name; `LookupError` with a sentence if it cannot be had."""
        if name not in self._providers:
            self._providers[name] = self.make_provider(name)
        return self._providers[name]

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            from workflows_app.engine.sandbox.client import Sandbox

            self._sandbox = Sandbox()
        return self._sandbox

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.aclose()
        self._providers.clear()
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
