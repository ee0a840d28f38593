"""Bodies that are too large, sent to the server that `up` starts."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.workflows.live.sockets import lab

MB = 1024 * 1024


@pytest.fixture
def facts(clean_environment: dict[str, str]) -> Iterator[dict[str, str]]:
    with lab(clean_environment) as (process, known):
        yield {**known, "pid": str(process.pid)}


def send(
    facts: dict[str, str], path: str, body: bytes, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(urlsplit(facts["url"]).netloc, timeout=20)
    given = {"Content-Type": "application/json", **(headers or {})}
    with closing(connection):
        connection.request("POST", path, body, given)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * MB


def spooled_bytes(pid: str) -> int:
    """What the process keeps in files that have no name any more."""
    found = [link.stat() for link in Path(f"/proc/{pid}/fd").iterdir() if "(deleted)" in str(link.readlink())]
    return sum(facts.st_size for facts in found)


def open_upload(facts: dict[str, str], length: int, first: bytes, path: bytes = b"/login/") -> socket.socket:
    address = urlsplit(facts["url"])
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=20)
    head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (path, length)
    connection.sendall(head + first)
    return connection


def test_a_body_is_refused_before_any_of_it_is_kept(facts: dict[str, str]) -> None:
    ingest, token = "/api/runs/ingest/", {"Authorization": f"Token {facts['key']}"}
    with open_upload(facts, 400 * MB, b"x" * MB) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
        assert spooled_bytes(facts["pid"]) < MB
    # Without a sign of who it is, ingest takes no more than the others.
    status, body = send(facts, ingest, b"x" * 6 * MB)
    assert (status, body["error"]["code"]) == (413, "too_large")
    assert "4160 KB" in body["error"]["message"]
    assert send(facts, "/api/workflows/", b"x" * 6 * MB, token)[0] == 413
    assert send(facts, ingest, b"x" * 33 * MB, token)[0] == 413
    assert send(facts, "/api/runs/", b"{}", token)[0] == 405  # and the server goes on


def test_a_body_without_a_length_is_cut_off_where_it_becomes_too_large(facts: dict[str, str]) -> None:
    address = urlsplit(facts["url"])
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as connection:
        connection.sendall(b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        started = time.monotonic()
        with pytest.raises(OSError):
            for part in endless():
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
                assert spooled_bytes(facts["pid"]) <= 5 * MB
        assert time.monotonic() - started < 15


def test_ingest_takes_what_it_promises(facts: dict[str, str]) -> None:
    nodes = [{"node_id": "shout", "output": "x" * 30 * MB}]
    report = {"workflow": "shout", "external_id": "big", "status": "completed", "nodes": nodes}
    token = {"Authorization": f"Token {facts['key']}"}
    status, body = send(facts, "/api/runs/ingest/", json.dumps(report).encode(), token)
    assert status == 201, body
