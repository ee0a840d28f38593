"""Lists that grow, a page at a time: `?limit=50` (200 at most) `&cursor=`."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError as DjangoInvalid
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from workflows_app.rest.faults import Invalid

DEFAULT_LIMIT, MOST = 50, 200
NOT_OURS = "cursor: this is none of ours; take it from `next` or `previous`."


def limit_of(request: Request) -> int:
    """How many rows a caller wants; more than 200 means 200."""
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdecimal() and int(text[:12]) >= 1):
        raise Invalid(f"limit: {text[:30]!r} will not do; use a whole number from 1 to {MOST}.")
    return min(int(text[:12]), MOST)


def whole_number(request: Request, name: str, default: int) -> int:
    """A query parameter that is 0 or more."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise Invalid(f"{name}: {text[:30]!r} will not do; use a whole number from 0.")
    return int(text)


class Pages(CursorPagination):
    """A page of a list, stable while rows are added."""

    page_size = DEFAULT_LIMIT
    page_size_query_param = "limit"
    max_page_size = MOST
    ordering = "-created_at"
    cursor_query_description = "Where to go on: taken from `next` or `previous`."
    page_size_query_description = "How many; 50 without it, 200 at most."

    def get_page_size(self, request: Request) -> int:
        return limit_of(request)

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return tuple(view.ordering_of(request))

    def decode_cursor(self, request: Request) -> Any:
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, ValueError):
            raise Invalid(NOT_OURS) from None
        if cursor is not None and "\0" in str(cursor.position):  # which PostgreSQL refuses
            raise Invalid(NOT_OURS)
        return cursor

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, TypeError, OverflowError) as error:  # a cursor that somebody made up
            raise Invalid(NOT_OURS) from error
        except DjangoInvalid:
            raise Invalid(NOT_OURS) from None

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }
