"""`ETag` and `If-Match`: two writers cannot lose each other's edit."""

from __future__ import annotations

from rest_framework.request import Request

from workflows_app.models import Workflow
from workflows_app.rest.faults import PreconditionFailed, PreconditionRequired


def etag_of(workflow: Workflow) -> str:
    """Changes with every version and every switch of `enabled`."""
    version = workflow.current_version
    text = f"{version.number}-{version.sha256[:16]}" if version else "0"
    return f'"{text}-{"on" if workflow.enabled else "off"}"'


def check_if_match(request: Request, workflow: Workflow) -> None:
    """428 without `If-Match`, 412 if it names another state than the present one."""
    header = request.headers.get("If-Match")
    if header is None:
        raise PreconditionRequired(
            "Send If-Match with the ETag of the workflow you started from, so that nobody's edit is lost."
        )
    named = [one.strip() for one in header.split(",")]
    if "*" not in named and etag_of(workflow) not in named:
        number = workflow.current_version.number if workflow.current_version else 0
        raise PreconditionFailed(
            f"{workflow.slug} has changed: it is at version {number}, ETag {etag_of(workflow)}. "
            "Read it again, compare, and send your change with that ETag."
        )


def is_unchanged(request: Request, etag: str) -> bool:
    """Whether the caller has this state already (`If-None-Match`)."""
    named = [one.strip().removeprefix("W/") for one in request.headers.get("If-None-Match", "").split(",")]
    return etag in named
