"""The site's doors for a fuzz test: who knocks, what is written, and how it is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import async_to_sync
from django.db import models, transaction
from django.test import Client, TestCase

from evals_app.models import BlockStatistics, Observation, PinnedBaseline
from tests.callers import caller, user_in
from tests.fuzz.effort import in_time
from workflows_app.models import (
    IdempotencyKey,
    Run,
    RunEvent,
    RunNode,
    Soul,
    SoulVersion,
    Workflow,
    WorkflowVersion,
)

TABLES: tuple[type[models.Model], ...] = (
    Run, RunNode, RunEvent, Observation, BlockStatistics, IdempotencyKey,
    Workflow, WorkflowVersion, Soul, SoulVersion, PinnedBaseline,
)  # fmt: skip


def api_client() -> Any:
    """An administrator's token; a fault in the server is a 500 and no exception."""
    client = caller("admin")
    client.raise_request_exception = False
    return client


def browser_client() -> Client:
    """An administrator's session."""
    client = Client(raise_request_exception=False)
    client.force_login(user_in("admin"), backend="django.contrib.auth.backends.ModelBackend")
    return client


@contextmanager
def taken_back() -> Iterator[None]:
    """What happens inside is committed as far as it can see, and undone afterwards."""
    with transaction.atomic():
        with TestCase.captureOnCommitCallbacks(execute=True):
            yield
        transaction.set_rollback(True)


def row_counts() -> dict[str, int]:
    return {table.__name__: table._default_manager.count() for table in TABLES}


def answer_of(client: Any, method: str, path: str, **options: Any) -> Any:
    """The answer to a request, which came soon and is no fault of the server's; a stream is read to its end."""
    with in_time():
        response = client.generic(method, path, **options)
        content = read_whole(response)
    assert response.status_code < 500, f"{method} {path[:300]} gave {response.status_code}: {content[:300]!r}"
    return response


def read_whole(response: Any) -> bytes:
    """The whole body, streamed or not."""
    if not response.streaming:
        return bytes(response.content)
    if response.is_async:
        return b"".join(async_to_sync(_collected)(response.streaming_content))
    return b"".join(response.streaming_content)


async def _collected(parts: Any) -> list[bytes]:
    return [part async for part in parts]
