"""The built-in demo provider: offline, deterministic, and clearly no real model."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import random
from typing import Self

from workflows_app.engine.providers.base import (
    ChatRequest,
    ChatResponse,
    Provider,
    ProviderError,
    ProviderSettings,
)
from workflows_app.engine.providers.demo.task import Ask, Task, split_prompt
from workflows_app.engine.providers.demo.wording import read_wording
from workflows_app.engine.providers.prices import estimate_tokens

# Each file here adds its tasks to the family; their `order` decides, not the order of import.
for _name in ("review", "invoice", "support", "release", "general"):
    importlib.import_module(f"{__name__}.{_name}")

MODELS = {  # milliseconds before the first token, milliseconds per token
    "demo-small": (180.0, 6.0),
    "demo-large": (420.0, 14.0),
}
_READ_AT_MOST = 20_000  # characters: a huge prompt is sampled, so that no demo answer takes long


class DemoProvider(Provider):
    """Plausible answers to the demo's kinds of work, the same for the same prompt, seed and drift.

    `drift` (0 to 1) makes answers slip more often and come slower, as a model does that changed behind its name.
    `sleep` waits for the simulated latency (times `latency_scale`); otherwise it is only recorded.
    """

    name = "demo"
    is_demo = True

    def __init__(
        self, *, seed: int = 0, drift: float = 0.0, sleep: bool = False, latency_scale: float = 1.0
    ) -> None:
        if not 0.0 <= drift <= 1.0:
            raise ValueError(f"drift is {drift}; it must lie between 0 and 1.")
        self.seed = seed
        self.drift = drift
        self.sleep = sleep
        self.latency_scale = latency_scale

    @classmethod
    def from_settings(cls, settings: ProviderSettings) -> Self:
        """Take seed, drift, sleep and latency_scale from the options."""
        return cls(**settings.options)

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Answer at once, or after the simulated latency if it is to be slept."""
        response = self.answer(request)
        if self.sleep and response.latency_ms:
            await asyncio.sleep(response.latency_ms / 1000)
        return response

    def answer(self, request: ChatRequest) -> ChatResponse:
        """The answer with its simulated tokens and latency."""
        if request.model not in MODELS:
            raise ProviderError(
                f"The demo provider has no model {request.model!r}; it has {' and '.join(MODELS)}.",
                kind="refused",
            )
        rng = random.Random(self._seed_for(request))  # noqa: S311  # must repeat, guards nothing
        text = self._text(request, rng)
        completion_tokens = estimate_tokens(text)
        if request.max_tokens is not None and completion_tokens > request.max_tokens:
            text, completion_tokens = text[: 4 * request.max_tokens], request.max_tokens
        start_ms, token_ms = MODELS[request.model]
        noise = min(2.0, max(0.6, rng.gauss(1.0, 0.12)))
        latency_ms = (start_ms + token_ms * completion_tokens) * noise * (1 + self.drift) * self.latency_scale
        return ChatResponse(
            text=text,
            prompt_tokens=estimate_tokens(request.system_prompt) + estimate_tokens(request.prompt) + 8,
            completion_tokens=completion_tokens,
            cached_tokens=0,
            model=request.model,
            latency_ms=round(latency_ms, 3),
        )

    def _text(self, request: ChatRequest, rng: random.Random) -> str:
        system, prompt = request.system_prompt[:_READ_AT_MOST], request.prompt[:_READ_AT_MOST]
        instructions, material = split_prompt(prompt)
        instructions = f"{system}\n{instructions}"
        wording = read_wording(instructions)
        slip = wording.slip_chance(request.model, request.temperature, self.drift)
        ask = Ask(system, prompt, instructions, material, wording, rng, slip, self.drift)
        task = next(task for task in Task.known if task.recognises(ask))
        return task.answer(ask)

    def _seed_for(self, request: ChatRequest) -> int:
        parts = (
            str(self.seed),
            request.seed_key,
            request.model,
            request.system_prompt,
            request.prompt,
            repr(request.temperature),
        )
        return int.from_bytes(
            hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        )
