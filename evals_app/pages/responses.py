"""Answers that are no pages: a text as it is, or one that is sent while it is made."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse


def plain(text: str) -> HttpResponse:
    """A text as it is."""
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def stream(request: HttpRequest, pieces: Iterator[str], content_type: str) -> StreamingHttpResponse:
    """Pieces of text, sent one by one; an ASGI server would first collect a plain iterator as a whole."""
    body: Any = _in_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # or a proxy would keep pieces back
    return StreamingHttpResponse(body, content_type=f"{content_type}; charset=utf-8", headers=headers)


async def _in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Work in the request's own thread, piece by piece: the event loop only passes them on."""
    take = sync_to_async(lambda: next(pieces, None))
    while (piece := await take()) is not None:
        yield piece
