"""Responses are sent compressed, except those that show a secret."""

import zlib
from collections.abc import AsyncIterator
from typing import Any

from django.http import HttpRequest
from django.middleware.gzip import GZipMiddleware


class CompressionMiddleware(GZipMiddleware):
    """Django's, which pads each response by a random length so that its size says little about its content (BREACH).

    CSRF tokens are masked differently in each response. A page that shows a secret once (a new token's key) says so with
    `shows_secret` and is not compressed at all, nor is part of a file. A one-time log-in link is printed in the terminal and answered by a
    redirect, which has no body.
    """

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        if getattr(response, "shows_secret", False) or response.has_header("Content-Range"):
            return response
        pieces = response.streaming_content if response.streaming and response.is_async else None
        response = super().process_response(request, response)
        if pieces is not None and response.get("Content-Encoding") == "gzip":
            # Django makes each piece a gzip file of its own, and browsers read only the first of them.
            response.streaming_content = _gzipped(pieces)
        return response


async def _gzipped(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """One gzip file, sent piece by piece as they come."""
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    async for piece in pieces:
        yield compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
