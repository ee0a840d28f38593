"""Bodies of bounded size: what is too large is refused before any of it is kept.

daphne writes a body to the disk until it has all of it, and only then asks who sent it.
"""
# ruff: noqa: N802 - twisted's names

from __future__ import annotations

import json
from typing import Any

from daphne.http_protocol import WebRequest
from daphne.server import Server
from django.conf import settings
from django.urls import reverse

from evals_app.api.evaluation import Ingest
from workflows_app.api.base.views import ApiView

# The parser of each call refuses what is larger for it; here is room for the rest of a form.
LARGEST_BYTES = ApiView.max_body_bytes + 64 * 1024
# A refusal is lost if the connection ends while the client still sends.
REFUSED_SECONDS = 5


class BoundedRequest(WebRequest):
    """A request that is answered with 413 as soon as its body is known to be too large."""

    _taken = 0
    _is_refused = False

    def gotLength(self, length: int | None) -> None:
        super().gotLength(length)
        self._most = self._most_bytes()
        if length is not None and length > self._most:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > self._most and not self._is_refused:
            self._refuse()
        if not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        if self._is_refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    def _most_bytes(self) -> int:
        path = self.channel._path.split(b"?", 1)[0]
        if path == reverse("api-ingest").encode() and self._says_who_it_is():
            return Ingest.max_body_bytes
        return LARGEST_BYTES

    def _says_who_it_is(self) -> bool:
        session = settings.SESSION_COOKIE_NAME.encode()
        return self.requestHeaders.hasHeader(b"Authorization") or session in self.received_cookies

    def _refuse(self) -> None:
        self._is_refused = True
        self.content.truncate(0)
        self.requestHeaders.removeHeader(b"Expect")  # or the client would be asked to go on
        message = f"The body is larger than the {self._most // 1024} KB this address takes."
        body = json.dumps({"error": {"code": "too_large", "message": message, "details": []}}).encode()
        head = (
            "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.channel.transport.write(head.encode() + body)
        self.channel.callLater(REFUSED_SECONDS, self.channel.loseConnection)


def bound_bodies(server: Server) -> None:
    """Called when the server has made its factories and not yet served anybody."""
    build = server.http_factory.buildProtocol

    def build_bounded(address: Any) -> Any:
        protocol = build(address)
        protocol.requestFactory = BoundedRequest
        return protocol

    server.http_factory.buildProtocol = build_bounded
