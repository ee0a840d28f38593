"""ETags, so that no writer loses another's edit."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from workflows_app.api.base.errors import PreconditionFailed

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` the change is based on, or `*`. If somebody else was first: 412.",
)


def is_named(etag: str, header: str) -> bool:
    """Whether a header names an ETag; that of a compressed response is marked as weak, and names the same state."""
    return etag in [one.strip().removeprefix("W/") for one in header.split(",")]


def check_if_match(request: Request, etag: str, what: str) -> None:
    """412 if `If-Match` names another state than the present one; `what` says in words which that is."""
    header = request.headers.get("If-Match", "*")
    if not is_named("*", header) and not is_named(etag, header):
        raise PreconditionFailed(
            f"{what}, ETag {etag}. Read it again, compare, and send your change with that ETag."
        )
