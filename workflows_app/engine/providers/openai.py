"""Any server that speaks the OpenAI chat API."""

from __future__ import annotations

import asyncio
import json
import random
import re
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any, Self

from workflows_app.engine.providers import (
    ChatRequest,
    ChatResponse,
    Provider,
    ProviderAccess,
    ProviderError,
)
from workflows_app.engine.providers.addresses import checked_addresses, parse_base_url
from workflows_app.engine.redaction import Redactor
from workflows_app.engine.values.outputs import storable

if TYPE_CHECKING:
    import ssl

    import httpx2

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 10.0
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
# Models that think before they answer count those tokens too, and take the limit under another name.
_COUNTS_THINKING = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is tried, and how long it waits in between: the server's own delay first, else doubling."""

    attempts: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def delay(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after the attempt (1, 2, …); jitter keeps parallel callers from coming back together."""
        if asked is not None:
            return min(asked, self.longest_seconds) * random.uniform(1.0, 1.1)  # noqa: S311  # guards nothing
        return min(self.first_seconds * 2.0 ** (attempt - 1), self.longest_seconds) * random.uniform(0.5, 1.0)  # noqa: S311


class OpenAIProvider(Provider):
    """The OpenAI chat completions API over HTTP, with a total time limit, bounded retries and bounded answers."""

    name = "openai"

    def __init__(
        self,
        *,
        base_url: str = DEFAULT_BASE_URL,
        api_key: str = "",
        timeout_seconds: float = 120.0,
        allow_private: bool = False,
        retry: RetryPolicy | None = None,
        max_answer_bytes: int = 4_000_000,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.base_url = base_url
        self._target = parse_base_url(base_url)
        self._api_key = api_key
        self._redactor = Redactor([api_key])
        self.timeout_seconds = timeout_seconds
        self.allow_private = allow_private
        self.retry = retry or RetryPolicy()
        self.max_answer_bytes = max_answer_bytes
        self._ssl_context = ssl_context
        self._limit_names: dict[str, str] = {}
        # A connection belongs to the event loop it was made in, and runs execute in several.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    @classmethod
    def connect(cls, access: ProviderAccess, *, sleep: bool = False, **options: Any) -> Self:
        """Take address, key and limits as they were set; only the demo is asked to `sleep`."""
        return cls(base_url=access.base_url or DEFAULT_BASE_URL, api_key=access.key, **options)

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Ask the server; retried within the time limit while that makes sense."""
        async with self._time_limit():
            try:
                answer = await self._call("POST", "/chat/completions", self._body(request))
            except UnsupportedLimitName as error:
                # Remembered, so that it costs one refused call per model and process.
                self._limit_names[request.model] = error.wanted
                answer = await self._call("POST", "/chat/completions", self._body(request))
        return read_answer(answer, request.model)

    async def check(self) -> str:
        """Ask for the list of models, which costs nothing."""
        async with self._time_limit():
            try:
                answer = await self._call("GET", "/models", None)
            except ProviderError as error:
                if error.kind != "not_found":
                    raise
                return "The server answers, but lists no models."
        models = answer.get("data") if isinstance(answer, dict) else None
        count = len(models) if isinstance(models, list) else 0
        return f"The server answers and lists {count} model{'' if count == 1 else 's'}."

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of loops that ended went with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.timeout_seconds):
                yield
        except TimeoutError:
            message = f"{self._target.host} gave no answer within {self.timeout_seconds:g} s."
            raise ProviderError(message, kind="timeout", retryable=True) from None

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        messages = [{"role": "user", "content": request.prompt}]
        if request.system_prompt:
            messages.insert(0, {"role": "system", "content": request.system_prompt})
        body: dict[str, Any] = {"model": request.model, "messages": messages}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            guess = "max_completion_tokens" if _COUNTS_THINKING.search(request.model) else "max_tokens"
            body[self._limit_names.get(request.model, guess)] = request.max_tokens
        return body

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        """The parsed answer of a call, tried again while the failure looks temporary and time is left."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.timeout_seconds
        for attempt in range(1, self.retry.attempts + 1):
            try:
                return await self._once(method, path, body)
            except _TemporaryError as error:
                delay = self.retry.delay(attempt, error.retry_after)
                if attempt == self.retry.attempts or clock() + delay > deadline:
                    tried = "" if attempt == 1 else f" Tried {attempt} times."
                    raise ProviderError(f"{error}{tried}", kind=error.kind, retryable=True) from None
                await asyncio.sleep(delay)
        raise ValueError(f"attempts is {self.retry.attempts}; it must be at least 1.")

    async def _once(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        """One call: to the first of the checked addresses that accepts a connection."""
        import httpx2

        addresses = await checked_addresses(self._target, allow_private=self.allow_private)
        host = self._target.host
        for address in addresses:
            try:
                status, headers, content = await self._exchange(method, address, path, body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if address == addresses[-1]:
                    raise _TemporaryError(
                        f"No connection to {host}: {self._shorten(str(error))}.", "unreachable"
                    ) from None
            except (httpx2.TimeoutException, httpx2.TransportError) as error:
                what = self._shorten(str(error)) or type(error).__name__
                raise _TemporaryError(f"The connection to {host} broke: {what}.", "unreachable") from None
            else:
                return self._read(status, headers, content)
        raise ProviderError(f"The name {host!r} has no address.", kind="unreachable")

    async def _exchange(
        self, method: str, address: str, path: str, body: dict[str, Any] | None
    ) -> tuple[int, httpx2.Headers, bytes]:
        """Send one request to one address, under the server's own name, and read a bounded answer."""
        exchange = self._client().stream(
            method,
            self._target.url_at(address, path),
            content=None if body is None else json.dumps(body).encode(),
            headers=self._headers(),
            extensions={"sni_hostname": self._target.host},
        )
        async with exchange as response:
            content = bytearray()
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self.max_answer_bytes:
                    host = self._target.host
                    message = f"The answer of {host} is larger than {self.max_answer_bytes} bytes."
                    raise ProviderError(message, kind="too_large")
            return response.status_code, response.headers, bytes(content)

    def _headers(self) -> dict[str, str]:
        # Answers are read raw, so that a compressed one cannot grow beyond the limit: no encoding is accepted.
        headers = {
            "Host": self._target.host_header,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "runsight",
        }
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            self._ssl_context = self._ssl_context or httpx2.create_ssl_context()
            # No proxy from the environment: it would resolve the name itself, past the check of the address.
            client = httpx2.AsyncClient(
                verify=self._ssl_context,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            )
            self._clients[loop] = client
        return client

    def _read(self, status: int, headers: httpx2.Headers, content: bytes) -> Any:
        """The parsed body of a good answer; the error of a bad one."""
        host = self._target.host
        if not 200 <= status < 300:
            raise self._failure(status, headers, content)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise ProviderError(f"{host} compressed its answer though asked not to.", kind="bad_answer")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            start = self._shorten(content[:200].decode("utf-8", "replace"))
            raise ProviderError(
                f"{host} answered with something that is not JSON: {start!r}.",
                kind="bad_answer",
                retryable=True,
            ) from None

    def _failure(self, status: int, headers: httpx2.Headers, content: bytes) -> ProviderError:
        """The error for a failed status: the server's message, and whether to try again."""
        reported, code = _server_error(content)
        message = f"{self._target.host} answered {status}"
        message += f": {self._shorten(reported)}" if reported else "."
        if status == 400 and (wanted := _wanted_limit_name(reported)):
            return UnsupportedLimitName(message, wanted)
        if code == "insufficient_quota":
            return ProviderError(message, kind="quota")
        if status in _RETRIED:
            kind = "rate_limited" if status == 429 else "server_error"
            return _TemporaryError(message, kind, retry_after(headers))
        if 300 <= status < 400:
            message += " Redirects are not followed; give the final address."
            return ProviderError(message, kind="bad_answer")
        kinds = {401: "auth", 403: "auth", 404: "not_found", 413: "too_large"}
        return ProviderError(message, kind=kinds.get(status, "refused" if status < 500 else "server_error"))

    def _shorten(self, text: str) -> str:
        """A server's text for an error message: one short line without the key."""
        line = " ".join(self._redactor.redact(text).split()).replace("\0", "")
        if self._api_key and len(self._api_key) > 3:
            line = line.replace(self._api_key, "[redacted]")  # even one too short to be looked for everywhere
        return line if len(line) <= 300 else line[:299] + "…"


class _TemporaryError(ProviderError):
    """A failure that may be gone with the next attempt, and the delay the server asked for."""

    def __init__(self, message: str, kind: str, retry_after: float | None = None) -> None:
        super().__init__(message, kind=kind, retryable=True)
        self.retry_after = retry_after


class UnsupportedLimitName(ProviderError):
    """The model takes the limit on tokens under another name."""

    def __init__(self, message: str, wanted: str) -> None:
        super().__init__(message, kind="refused")
        self.wanted = wanted


def retry_after(headers: httpx2.Headers) -> float | None:
    """The delay a server asks for, in seconds: as milliseconds, as seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text):
            return float(text) / unit
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def read_answer(answer: Any, model: str) -> ChatResponse:
    """The response in a parsed body; `ProviderError` if it has not the shape of one."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text = message.get("content")
        if not isinstance(text, str | None):  # some servers send it in parts
            text = "".join(part["text"] for part in text if part.get("type") in ("text", "output_text"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ProviderError(
            "The answer has no choices[0].message.content.", kind="bad_answer", retryable=True
        ) from None
    if message.get("refusal"):
        raise ProviderError(f"The model refused: {str(message['refusal'])[:300]}", kind="refused")
    if choice.get("finish_reason") == "content_filter":
        raise ProviderError("The server's content filter stopped the answer.", kind="refused")
    if text is None:
        raise ProviderError("The answer holds no text.", kind="bad_answer", retryable=True)
    usage = answer.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    name = answer.get("model")
    return ChatResponse(
        text=storable(text),
        prompt_tokens=_reported(usage, "prompt_tokens"),
        completion_tokens=_reported(usage, "completion_tokens"),
        cached_tokens=_reported(details, "cached_tokens"),
        model=storable(name)[:200] if isinstance(name, str) and name else model,
    )


def _reported(values: Any, name: str) -> Any:
    return values.get(name) if isinstance(values, dict) else None


def _server_error(content: bytes) -> tuple[str, str]:
    """Message and code of an error body, in the shapes servers use; of anything else its text."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content[:1000].decode("utf-8", "replace"), ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail") or ""
        return str(message)[:1000], str(error.get("code") or error.get("type") or "")
    return str(error)[:1000], ""


def _wanted_limit_name(message: str) -> str | None:
    """The name a server wants for the limit on tokens, if that is its complaint."""
    refused = r"(?:unrecognized|unknown|extra|unsupported)"
    if re.search(rf"(?:{refused}|not supported)", message, re.I) and "max_tokens" in message:
        return "max_completion_tokens" if "max_completion_tokens" in message else None
    is_new_name_refused = re.search(rf"{refused}[^.]{{0,60}}max_completion_tokens", message, re.I)
    return "max_tokens" if is_new_name_refused else None
