"""Frames, addresses and headers nobody would send, to a server that runs: a code that says why, and it goes on."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from tests.callers import user_in
from tests.fuzz.effort import effort, in_time
from tests.fuzz.mutations import ODD_NUMBERS, broken, texts, values
from tests.workflows.live.sockets import finished_run, session_of

FAILED = 1011  # the server's own fault
frames = (
    values.map(json.dumps)
    | broken({"event": "pong", "at": [1, {"a": None}]}).map(json.dumps)
    | texts.filter(lambda text: text.isascii() or ("\ud800" not in text and "\udfff" not in text))
    | st.binary(max_size=40)
    | st.sampled_from(["[" * 50_000, '{"event": "pong"}', "\0", b"\xff\xfe", "9" * 5000, '"' + "a" * 100_000])
)
cursors = texts | st.sampled_from([str(number) for number in ODD_NUMBERS]) | st.integers(-2, 9).map(str)
PATHS = [
    "runs/{run}/",
    "runs/{other}/",
    "runs/x/",
    "workflows/shout/",
    "workflows/%00/",
    "dashboard/",
    "",
    "%ff/",
    "../admin/",
]
headers = st.dictionaries(
    st.sampled_from(["Origin", "Authorization", "Cookie", "X-Forwarded-For", "Sec-WebSocket-Protocol"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
    | st.sampled_from(["null", "http://[", "http://x:99999999", "https://", "Token ", "Token \xff", "sessionid=;=;\xff", "a" * 4000]),
    max_size=2,
)  # fmt: skip


@pytest.fixture
def watched(live_site: str) -> dict[str, Any]:
    """A run that is over, and who may watch it."""
    return {"run": str(finished_run().pk), "cookie": session_of(user_in("viewer")), "url": live_site}


def quoted(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="")


def talk(watched: dict[str, Any], path: str, sent: dict[str, str], said: list[str | bytes]) -> None:
    """Connect, say it all, and see how it ends: with a code, a refusal, or a socket that stays open."""
    url = watched["url"].replace("http", "ws", 1) + "/ws/" + path.format(run=watched["run"], other=uuid4())
    try:
        with in_time(), connect(url, additional_headers=sent, max_size=None, close_timeout=2) as socket:
            for frame in said:
                socket.send(frame)
            while True:
                socket.recv(timeout=0.05)
    except TimeoutError:
        pass
    except ConnectionClosed as closed:
        assert closed.rcvd is not None, "cut without a code"
        assert closed.rcvd.code != FAILED, closed.rcvd.reason
    except InvalidHandshake as refused:
        status = refused.response.status_code if hasattr(refused, "response") else 400
        assert status < 500, f"{path}: {status}"


def is_alive(watched: dict[str, Any]) -> bool:
    return requests.get(watched["url"] + "/healthz", timeout=10).status_code == 200


@effort(20, cost=5)
@given(
    st.lists(frames, min_size=1, max_size=3),
    st.sampled_from(["runs/{run}/", "dashboard/", "workflows/shout/"]),
)
def test_any_frame(watched: dict[str, Any], said: list[str | bytes], path: str) -> None:
    talk(watched, path, watched["cookie"], said)
    assert is_alive(watched)


@effort(20, cost=5)
@given(st.sampled_from(PATHS), cursors, st.text("aft=&%;0+", max_size=8))
def test_any_address(watched: dict[str, Any], path: str, after: str, more: str) -> None:
    talk(watched, f"{path}?after={quoted(after)}&{quoted(more)}", watched["cookie"], [])
    assert is_alive(watched)


@effort(20, cost=5)
@given(st.sampled_from(["runs/{run}/", "dashboard/"]), headers)
def test_any_header(watched: dict[str, Any], path: str, sent: dict[str, str]) -> None:
    talk(watched, path, {**watched["cookie"], **sent}, [])
    assert is_alive(watched)
