"""The built-in demo provider: offline, deterministic, and clearly no real model."""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any, Self

from workflows_app.engine.providers import ChatRequest, ChatResponse, Provider, ProviderAccess, ProviderError
from workflows_app.engine.providers.demo.invoice import invoice
from workflows_app.engine.providers.demo.prompt import Ask
from workflows_app.engine.providers.demo.release import release_notes
from workflows_app.engine.providers.demo.support import reply, triage
from workflows_app.engine.providers.demo.writing import analysis, any_json, draft, review, summary
from workflows_app.engine.providers.prices import estimate_tokens

MODELS = {  # milliseconds before the first token, milliseconds per token
    "demo-small": (180.0, 6.0),
    "demo-large": (420.0, 14.0),
}
# The first that does not return None has recognised its kind of request; an analysis answers anything.
TASKS = (review, invoice, triage, reply, release_notes, draft, any_json, summary)


class DemoProvider(Provider):
    """Plausible answers to the demo's kinds of work, the same for the same prompt, seed and drift.

    `drift` (0 to 1) makes answers slip more often and come slower, as a model does that changed behind its name.
    `sleep` waits for the simulated latency (times `latency_scale`); otherwise it is only recorded.
    """

    name = "demo"

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
    def connect(
        cls,
        access: ProviderAccess,
        *,
        timeout_seconds: float = 0,
        allow_private: bool = False,
        **options: Any,
    ) -> Self:
        """From its own options alone: it calls no server."""
        return cls(**options)

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
        identity = (self.seed, request.seed_key, request.model, request.system_prompt, request.prompt)
        text = "\0".join([*map(str, identity), repr(request.temperature)])
        seed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        rng = random.Random(int.from_bytes(seed, "big"))  # noqa: S311  # must repeat, guards nothing
        ask = Ask(request, rng, self.drift)
        text = next((said for task in TASKS if (said := task(ask)) is not None), None) or analysis(ask)
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
