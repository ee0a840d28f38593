"""Log lines carry the request, parse as JSON and hold no secrets."""

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO

import pytest
import structlog
from django.test import AsyncClient, Client

from runsight_site.logging import line_formatter
from workflows_app.models import Provider
from workflows_app.security import credentials

KEY = "sk-" + "a1B2c3D4e5F6g7H8i9J0"


@pytest.fixture
def log() -> Iterator[StringIO]:
    """What a handler with our formatter wrote, where standard error is no terminal."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(line_formatter())
    logger = logging.getLogger("runsight.test")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def test_plain_and_structured_lines_are_json(log: StringIO) -> None:
    logging.getLogger("runsight.test").warning("run %s is late", 42)
    structlog.get_logger("runsight.test").warning("late", run=42)
    plain, structured = (json.loads(line) for line in log.getvalue().splitlines())
    assert (plain["event"], plain["level"], plain["logger"]) == ("run 42 is late", "warning", "runsight.test")
    assert (structured["event"], structured["run"]) == ("late", 42)
    assert plain["timestamp"].endswith("Z")


def test_secrets_are_in_no_line_nor_traceback(log: StringIO) -> None:
    logger = logging.getLogger("runsight.test")
    logger.warning("called with %s", KEY)
    try:
        raise ValueError(f"refused: {KEY}")
    except ValueError:
        logger.exception("failed")
    structlog.get_logger("runsight.test").warning("called", headers=f"Bearer {KEY}", nested={"key": [KEY]})
    assert KEY not in log.getvalue()
    assert log.getvalue().count("[redacted]") == 4


@pytest.mark.django_db
def test_stored_provider_keys_are_in_no_line_either(log: StringIO) -> None:
    key = "a plain word as key"
    Provider.objects.create(name="house", kind="openai", encrypted_key=credentials.encrypt_key(key))
    credentials.forget()
    credentials.provider_accesses()  # whoever uses a key has read it so
    logging.getLogger("runsight.test").warning("refused %s", key)
    assert "refused [redacted]" in log.getvalue()


def test_terminal_gets_columns(log: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = line_formatter().format(logging.LogRecord("runsight", logging.INFO, "", 0, "hello", None, None))
    assert "hello" in line
    assert not line.startswith("{")


def test_answer_names_its_request(client: Client) -> None:
    assert len(client.get("/healthz").headers["X-Request-ID"]) == 32
    given = client.get("/healthz", headers={"X-Request-ID": "proxy-7"})
    assert given.headers["X-Request-ID"] == "proxy-7"
    forged = client.get("/healthz", headers={"X-Request-ID": 'x" level="error'})
    assert len(forged.headers["X-Request-ID"]) == 32


async def test_answer_names_its_request_when_served_asynchronously(async_client: AsyncClient) -> None:
    response = await async_client.get("/healthz", headers={"X-Request-ID": "proxy-8"})
    assert response.headers["X-Request-ID"] == "proxy-8"


def test_lines_of_a_request_carry_its_id(
    client: Client, log: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runsight_site.serving import health

    real = health.HttpResponse

    def logging_response(*args: object, **kwargs: object) -> object:
        logging.getLogger("runsight.test").warning("inside")
        return real(*args, **kwargs)

    monkeypatch.setattr(health, "HttpResponse", logging_response)
    client.get("/healthz", headers={"X-Request-ID": "proxy-9"})
    logging.getLogger("runsight.test").warning("outside")
    inside, outside = (json.loads(line) for line in log.getvalue().splitlines())
    assert inside["request_id"] == "proxy-9"
    assert "request_id" not in outside
