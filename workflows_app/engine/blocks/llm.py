"""`llm`: one call of a soul. Gates and dispatch branches ask through here, too."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

from workflows_app.engine.blocks.base import Block, Call
from workflows_app.engine.definition import LlmBlockDef, SoulDef
from workflows_app.engine.limits import CallEstimate
from workflows_app.engine.providers import ChatRequest, ChatResponse, Provider, ProviderError
from workflows_app.engine.providers.prices import call_cost, estimate_tokens, price_table_version
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens
from workflows_app.engine.values.conditions import as_text


class LlmBlock(Block[LlmBlockDef]):
    """Asks its soul the rendered prompt."""

    type = "llm"

    async def run(self, timeout_seconds: float) -> BlockResult:
        template = self.block.prompt
        prompt = self._gathered() if template is None else self.context.render(template)
        return await ask(self.call, self.block.soul_ref, prompt)

    def _gathered(self) -> str:
        """Without a prompt: the instruction, then what the block depends on."""
        inputs = self.context.inputs()
        if self.block.inputs is None:
            instruction = self.context.run.inputs.get("instruction")
            parts: dict[str, Any] = {**self.context.depended_outputs()}
        else:
            instruction = inputs.pop("instruction", None)
            parts = inputs
        texts = [as_text(instruction)] if instruction else []
        is_alone = not texts and len(parts) == 1
        texts += [
            as_text(value) if is_alone else f"{name}:\n{as_text(value)}" for name, value in parts.items()
        ]
        if not any(text.strip() for text in texts):
            raise BlockFailure(
                "no_prompt",
                f"Block '{self.step.block_id}' has no prompt, no `instruction` input and depends on no output.",
            )
        return "\n\n".join(texts)


async def ask(call: Call, soul_ref: str, prompt: str) -> BlockResult:
    """Have a soul answer a prompt, within the limits."""
    soul = call.tools.souls.get(soul_ref) or call.definition.souls.get(soul_ref)
    if soul is None:
        raise BlockFailure(
            "unknown_soul", f"Soul '{soul_ref}' is neither in the workflow nor in the library."
        )
    provider = _provider(call, soul)
    request = ChatRequest(
        model=soul.model_name,
        system_prompt=soul.system_prompt or (f"You are {soul.role}." if soul.role else ""),
        prompt=prompt,
        temperature=soul.temperature,
        max_tokens=soul.max_tokens,
        seed_key=f"{call.definition.slug or call.definition.name}/{call.step.node_id}",
    )
    estimate = CallEstimate(
        model=request.model,
        prompt_tokens=estimate_tokens(request.system_prompt) + estimate_tokens(prompt),
        max_tokens=soul.max_tokens,
        base_url=provider.base_url,
    )
    call.warnings.extend(call.tools.spend.check_call(call.step.block_id, estimate))
    try:
        response = await provider.complete(request)
    except ProviderError as error:
        raise BlockFailure(error.kind, error.message, is_retryable=error.retryable) from error
    result = _result(call, soul, request, response, provider.base_url)
    _charge(call, result, estimate, response)
    return result


def _provider(call: Call, soul: SoulDef) -> Provider:
    try:
        if call.tools.provider is None:
            raise LookupError("This run has no providers.")
        return call.tools.provider(soul.provider)
    except LookupError as error:
        message = str(error.args[0]) if error.args else f"Unknown provider '{soul.provider}'."
        raise BlockFailure("unknown_provider", f"Soul '{soul.id}' cannot answer: {message}") from None


def _result(
    call: Call, soul: SoulDef, request: ChatRequest, response: ChatResponse, base_url: str
) -> BlockResult:
    model = response.model or request.model
    cost = table = None
    if response.cost_usd is not None:
        cost, table = Decimal(str(response.cost_usd)), "provider"
    else:
        # What was asked for decides: a server may answer under a name that no table knows.
        for priced in (request.model, model):
            cost = _cost(call, priced, response, base_url)
            if cost is not None:
                table = price_table_version(priced, overrides=call.tools.price_overrides)
                break
    asked = f"{request.system_prompt}\0{request.prompt}"
    prompt_tokens, completion_tokens = response.prompt_tokens, response.completion_tokens
    tokens = Tokens(prompt=prompt_tokens or 0, completion=completion_tokens or 0)
    details = {
        "model": model,
        "provider": soul.provider,
        "token_classes": {
            "prompt": prompt_tokens,
            "completion": completion_tokens,
            "cached": response.cached_tokens,
        },
        "price_table": table,
    }
    return BlockResult(
        output=response.text,
        latency_ms=response.latency_ms,
        cost_usd=cost,
        tokens=None if prompt_tokens is None and completion_tokens is None else tokens,
        soul_id=soul.id,
        soul_version=soul.version,
        prompt=request.prompt,
        prompt_hash=hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        details=details,
    )


def _cost(call: Call, model: str, response: ChatResponse, base_url: str) -> Decimal | None:
    return call_cost(
        model,
        response.prompt_tokens,
        response.completion_tokens,
        response.cached_tokens,
        overrides=call.tools.price_overrides,
        base_url=base_url,
    )


def _charge(call: Call, result: BlockResult, estimate: CallEstimate, response: ChatResponse) -> None:
    """Count the call's cost and tokens, estimated where the server reported none, so that limits still apply."""
    prompt = estimate.prompt_tokens if response.prompt_tokens is None else response.prompt_tokens
    completion = response.completion_tokens
    if completion is None:
        completion = estimate_tokens(response.text)
    cost = result.cost_usd
    if cost is None:
        estimated = replace(response, prompt_tokens=prompt, completion_tokens=completion)
        cost = _cost(call, estimate.model, estimated, estimate.base_url)
    call.tools.spend.add(call.step.block_id, cost, prompt + completion)
