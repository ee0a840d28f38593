"""Viewers for tests: a real websocket client, logged in by session or by token."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.callers import user_in
from tests.factories import finish, make_workflow
from workflows_app import events, services
from workflows_app.models import Run

LAB = Path(__file__).with_name("socket_lab.py")
PATIENCE_S = 30.0  # other processes take long to start on a busy machine


class Viewer:
    """An open socket and what has come over it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.frames: list[dict[str, Any]] = []

    def next(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout))
        self.frames.append(frame)
        return frame

    def until(self, event: str) -> dict[str, Any]:
        while True:
            frame = self.next()
            if frame["event"] == event:
                return frame

    def until_seq(self, seq: int) -> list[int]:
        """Read up to this number; all numbers read so far."""
        while not self.seqs or self.seqs[-1] < seq:
            self.next()
        return self.seqs

    def is_quiet(self, seconds: float = 0.6) -> bool:
        try:
            self.next(seconds)
        except TimeoutError:
            return True
        return False

    def end(self, timeout: float = PATIENCE_S) -> tuple[int, str]:
        """The code and the reason with which the server ends the socket."""
        try:
            while True:
                self.next(timeout)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None, "the connection was cut without a code"
            return closed.rcvd.code, closed.rcvd.reason

    @property
    def seqs(self) -> list[int]:
        return [frame["seq"] for frame in self.frames if "seq" in frame]


@contextmanager
def viewing(site: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> Iterator[Viewer]:
    """A viewer of a path such as `runs/<id>/`; without headers an administrator with a session."""
    if headers is None:
        headers = session_of(user_in("viewer"))
    url = site.replace("http", "ws", 1) + "/ws/" + path
    with connect(url, additional_headers=headers, max_size=None, **options) as connection:
        yield Viewer(connection)


def session_of(user: User) -> dict[str, str]:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return {"Cookie": f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"}


def token_of(user: User, **options: Any) -> dict[str, str]:
    return {"Authorization": f"Token {services.make_token(user, secrets.token_hex(4), **options)[1]}"}


def finished_run(slug: str = "shout") -> Run:
    """A run that is over, so that only the test adds to its history."""
    return finish(services.start_run(make_workflow(slug=slug)))


@transaction.atomic
def happen(run: Run, count: int = 1, **data: Any) -> int:
    """Commit events as a service does; the last number."""
    first = events.advance(run, count=count)
    for seq in range(first, first + count):
        events.append(run, seq, "node_started", node_id=f"b{seq}", **data)
    return first + count - 1


@contextmanager
def lab(environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    process = subprocess.Popen(
        [sys.executable, str(LAB)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert "Traceback" not in errors, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
