"""Log lines: JSON for machines, columns for a terminal, secrets in neither."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Awaitable, Callable
from logging import Filter, Formatter, LogRecord
from typing import Any, cast

import structlog
from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from structlog.typing import Processor

from workflows_app.engine.redaction import redact_log_line
from workflows_app.log_throttle import LogThrottle

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def redact(logger: Any, method: str, line: Any) -> str:
    """Take stored keys and known kinds of secrets out of the finished line, tracebacks and nested values included."""
    return redact_log_line(str(line))


_BEFORE: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
    structlog.processors.UnicodeDecoder(),
]


def line_formatter() -> Formatter:
    """The formatter of every handler, made by Django's LOGGING setting."""
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(pad_event_to=0)
        if sys.stderr.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_BEFORE, processors=[remove_meta, renderer, redact]
    )


class ThrottleFilter(Filter):
    """Lets a library that repeats itself through once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = LogThrottle()

    def filter(self, record: LogRecord) -> bool:
        return self._throttle.allow() is not None


def configure() -> None:
    """Let `structlog.get_logger()` write through the standard library's handlers."""
    structlog.configure(
        processors=[*_BEFORE, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


@sync_and_async_middleware
def request_id_middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Give every request an id, on each of its log lines and in the answer's `X-Request-ID`."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> HttpResponseBase:
            with structlog.contextvars.bound_contextvars(request_id=(name := request_id(request))):
                response = await cast("Awaitable[HttpResponseBase]", get_response(request))
            response.headers["X-Request-ID"] = name
            return response

        return middleware

    def sync_middleware(request: HttpRequest) -> HttpResponseBase:
        with structlog.contextvars.bound_contextvars(request_id=(name := request_id(request))):
            response = cast("HttpResponseBase", get_response(request))
        response.headers["X-Request-ID"] = name
        return response

    return sync_middleware


def request_id(request: HttpRequest) -> str:
    """The proxy's id if it is harmless, else a fresh one."""
    proposed = request.headers.get("X-Request-ID", "")
    return proposed if _REQUEST_ID.fullmatch(proposed) else uuid.uuid4().hex
