"""Frames between the server and a block's process: a kind, a length, the bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

JOB, STDOUT, RESULT, FAILURE, REFUSED = b"J", b"O", b"R", b"E", b"S"
_HEAD = struct.Struct("!cI")
_LARGEST_JOB = (1 << 32) - 1  # what a head can say; the server is trusted


def pack(kind: bytes, body: bytes) -> bytes:
    """Make one frame."""
    return _HEAD.pack(kind, len(body)) + body


class Malformed(ValueError):
    """The other side wrote something that is no frame."""


class Unpacker:
    """Takes bytes as they come and gives back the frames that are complete."""

    def __init__(self, most: int) -> None:
        self._buffer = bytearray()
        self._most = most

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """Add bytes; a frame longer than allowed is refused before it is stored."""
        self._buffer += chunk
        frames = []
        while len(self._buffer) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._buffer)
            if kind not in (JOB, STDOUT, RESULT, FAILURE, REFUSED) or length > self._most:
                raise Malformed(f"a frame of kind {kind!r} with {length} bytes")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                break
            frames.append((kind, bytes(self._buffer[_HEAD.size : end])))
            del self._buffer[:end]
        return frames


def read_job(channel: socket.socket) -> dict[str, Any] | None:
    """Wait for the job; None if the server went away instead."""
    unpacker = Unpacker(_LARGEST_JOB)
    while chunk := channel.recv(1 << 20):
        for _, body in unpacker.feed(chunk):
            job: dict[str, Any] = json.loads(body)
            return job
    return None
