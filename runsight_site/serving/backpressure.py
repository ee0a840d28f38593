"""daphne with patience: a websocket's `send` waits while its viewer does not read.

daphne hands every frame to the transport and returns at once, so a viewer who stops reading fills the
server's memory and nobody notices. Here the transport says when it is full, and `send` waits until it is not.
"""
# ruff: noqa: N802, N815 - twisted's names

from __future__ import annotations

import asyncio
from typing import Any

from autobahn.exception import Disconnected
from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

# Time for a slow viewer to read its way to our good-bye, before the connection is cut.
CLOSE_SECONDS = 20
# Viewers send nothing but pongs.
LARGEST_INCOMING_BYTES = 64 * 1024


@implementer(IPushProducer)
class PacedSocket(WebSocketProtocol):
    """A websocket that knows whether its viewer is reading."""

    _is_paced = False
    maxMessagePayloadSize: int

    def onConnect(self, request: Any) -> Any:
        self.may_write = asyncio.Event()
        self.may_write.set()
        return super().onConnect(request)

    def onOpen(self) -> None:
        # The HTTP request before us has registered itself, to stop reading when we write too much.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        self._is_paced = True
        super().onOpen()

    def pauseProducing(self) -> None:
        self.may_write.clear()

    def resumeProducing(self) -> None:
        self.may_write.set()

    def stopProducing(self) -> None:
        self.may_write.set()

    def sendMessage(self, *args: Any, **options: Any) -> None:
        # The limit is meant for what comes in, but holds for both directions.
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().sendMessage(*args, **options)
        finally:
            self.maxMessagePayloadSize = limit

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        # autobahn paints a log line for each write, which took more time than all the rest of sending.
        if sync or chopsize or self.send_queue:
            super().sendData(data, sync, chopsize)
        else:
            self.transport.write(data)

    def dropConnection(self, abort: bool = False) -> None:
        self._unpace()
        super().dropConnection(abort)

    def serverClose(self, code: int | None = None, reason: str | None = None) -> None:
        """Say good-bye with a reason, which daphne leaves out."""
        self._unpace()
        self.sendCloseFrame(code=1000 if code is None else code, reasonUtf8=(reason or "").encode())

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.close" and self.state != self.STATE_CONNECTING:
            self.serverClose(message.get("code"), message.get("reason"))
        else:
            super().handle_reply(message)

    def _unpace(self) -> None:
        # A transport with a paused producer would wait for it instead of closing.
        if self._is_paced:
            self._is_paced = False
            self.transport.unregisterProducer()
            self.may_write.set()


class PacedServer(Server):
    """daphne's server with paced websockets."""

    def pace_sockets(self) -> None:
        """Called when the server has made its factories and not yet served anybody."""
        self.ws_factory.protocol = PacedSocket
        self.ws_factory.setProtocolOptions(
            failByDrop=False,  # say why before the connection ends
            closeHandshakeTimeout=CLOSE_SECONDS,
            maxMessagePayloadSize=LARGEST_INCOMING_BYTES,
            maxFramePayloadSize=LARGEST_INCOMING_BYTES,
        )

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        if message["type"] != "websocket.send":
            await super().handle_reply(protocol, message)
            return
        await protocol.may_write.wait()
        try:
            await super().handle_reply(protocol, message)
        except Disconnected as gone:
            raise ConnectionResetError("the viewer has gone") from gone
