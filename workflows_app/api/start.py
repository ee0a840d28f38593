"""`POST workflows/<slug>/runs/?wait=30` without a thread or a connection while the run goes on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponseBase
from rest_framework.response import Response

from workflows_app.api.runs import WorkflowRuns, find_run, wait_seconds
from workflows_app.api.serializers import RunSerializer
from workflows_app.execution.waiting import until_ended

_view = WorkflowRuns.as_view()


async def workflow_runs(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The DRF view, and for a started run its end if the caller waits for it."""
    response = await sync_to_async(_view)(request, slug=slug)
    if request.method != "POST" or not isinstance(response, Response) or response.status_code != 201:
        return response
    seconds = wait_seconds(request)
    if seconds:
        run_id = UUID(str(response.data["id"]))
        await sync_to_async(_give_back_connection)()
        _let_thread_go()
        await until_ended(run_id, seconds)
        response.data = await sync_to_async(lambda: RunSerializer(find_run(run_id)).data)()
    return response


def _give_back_connection() -> None:
    if not connection.in_atomic_block:  # tests wrap a request in a transaction of theirs
        connection.close()


def _let_thread_go() -> None:
    """End this request's own thread; asgiref makes another when the next synchronous call comes."""
    context: Any = SyncToAsync.thread_sensitive_context.get(None)
    executor = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor is not None:
        executor.shutdown(wait=False)


# What Django and the OpenAPI generator look for on a view.
for _name in ("cls", "initkwargs", "csrf_exempt", "login_required", "view_class"):
    if hasattr(_view, _name):
        setattr(workflow_runs, _name, getattr(_view, _name))
