"""Liveness and readiness, for load balancers and people."""

import asyncio
from collections.abc import Awaitable

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from workflows_app import executors


@login_not_required
async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
async def readyz(request: HttpRequest) -> JsonResponse:
    """Database and channel layer answer within two seconds, and runs are executed."""
    checks = {
        "database": await _answers(_database()),
        "channel_layer": await channel_layer_state(),
        "executor": executor_state(),
    }
    has_failed = any(state.startswith("failed") for state in checks.values())
    return JsonResponse(checks, status=503 if has_failed else 200)


def executor_state() -> str:
    """Whether this process executes runs, where that is its task."""
    if settings.RUNSIGHT_EXECUTOR != "local":
        return "in other processes"
    return "ok" if executors.service().is_alive else "failed: not running"


async def channel_layer_state() -> str:
    """`ok`, or what is wrong with the channel layer."""
    return await _answers(_channel_layer())


async def _answers(check: Awaitable[None]) -> str:
    try:
        await asyncio.wait_for(check, timeout=2)
    except Exception as error:  # noqa: BLE001 - whatever is wrong is the answer
        return f"failed: {type(error).__name__}"
    return "ok"


@sync_to_async
def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _channel_layer() -> None:
    # To a group that nobody is in: a channel of its own would stay subscribed after each call.
    await get_channel_layer().group_send("ready_check", {"type": "ready.check"})
