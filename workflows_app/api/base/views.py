"""The bases of every endpoint: one path, a list in pages, and the filters of lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.core.exceptions import ValidationError as DjangoInvalid
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app.api.base.errors import Invalid
from workflows_app.api.base.permissions import token_of
from workflows_app.models import ApiToken

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

DEFAULT_LIMIT, MOST = 50, 200


def fields_parameter(serializer: Any) -> OpenApiParameter:
    """`fields` as the document shows it, with the names it takes."""
    names = "|".join(serializer.Meta.fields)
    return OpenApiParameter(
        "fields",
        {"type": "string", "pattern": f"^(-?({names})(,-?({names}))*)?$"},
        description="Only these fields, such as `id,status`; or all but some, such as `-inputs,-outputs`.",
    )


class ApiView(GenericAPIView[Any]):
    """One path: which permission each method needs, and how much it reads."""

    permissions: ClassVar[Mapping[str, str]] = {}
    max_body_bytes: ClassVar[int] = 4 * 1024 * 1024
    keeps_any_text: ClassVar[bool] = False  # True: the view itself makes texts storable
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    pagination_class: Any = None
    filter_backends: Any = ()

    @property
    def caller(self) -> AbstractBaseUser:
        """Who calls; the permission class lets nobody else through."""
        return cast("AbstractBaseUser", self.request.user)

    @property
    def token(self) -> ApiToken | None:
        return token_of(self.request)

    def read(self, serializer: Any, data: Any = None, **options: Any) -> dict[str, Any]:
        """What was sent, checked; anything wrong is 400 with its place."""
        sent = self.request.data if data is None else data
        checked = serializer(data=sent, context=self.get_serializer_context(), **options)
        checked.is_valid(raise_exception=True)
        values: dict[str, Any] = checked.validated_data
        return values


def limit_of(request: Request) -> int:
    """How many rows a caller wants; more than 200 means 200."""
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))[:30]
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise Invalid(f"limit: {text!r} is not valid; use a whole number from 1 to {MOST}.")
    return min(int(text), MOST)


def whole_number(request: Request, name: str) -> int:
    """A query parameter that is 0 or more; 0 without it."""
    text = request.query_params.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise Invalid(f"{name}: {text[:30]!r} is not valid; use a whole number from 0.")
    return int(text)


class Pages(CursorPagination):
    """A page of a list, stable while rows are added."""

    page_size_query_param = "limit"
    cursor_query_description = "Where to go on: taken from `next` or `previous`."
    page_size_query_description = "How many; 50 without it, 200 at most."

    def get_page_size(self, request: Request) -> int:
        return limit_of(request)

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return tuple(view.ordering_of(request))

    def decode_cursor(self, request: Request) -> Any:
        cursor = super().decode_cursor(request)
        if cursor is not None and "\0" in str(cursor.position):
            raise ValueError("PostgreSQL refuses NUL characters.")
        return cursor

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValueError, TypeError, OverflowError, DjangoInvalid):  # one that somebody made up
            message = "cursor: this is none of ours; take it from `next` or `previous`."
            raise Invalid(message) from None

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }


class ListView(ApiView, ListAPIView[Any]):
    """A list in pages. `orderings` maps what a caller may ask for to columns that have an index."""

    pagination_class = Pages
    filter_backends = (filters.DjangoFilterBackend,)
    orderings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    default_ordering: ClassVar[str] = ""

    def ordering_of(self, request: Request) -> tuple[str, ...]:
        wanted = request.query_params.get("ordering", self.default_ordering)
        try:
            return self.orderings[wanted]
        except KeyError:
            known = ", ".join(self.orderings)
            raise Invalid(f"ordering: {wanted[:30]!r} is not valid; use one of {known}.") from None


def list_schema(operation_id: str, *parameters: OpenApiParameter) -> Callable[[Any], Any]:
    """Describe the `get` of a list in the OpenAPI document: its rows, and what it can be ordered by."""

    def describe(view: type[ListView]) -> Any:
        found = list(parameters)
        if len(view.orderings) > 1:
            names, default = list(view.orderings), view.default_ordering
            found.append(OpenApiParameter("ordering", str, enum=names, default=default))
        rows = view.serializer_class(many=True)  # type: ignore[misc]  # every list names one
        return extend_schema_view(
            get=extend_schema(operation_id=operation_id, parameters=found, responses=rows)
        )(view)

    return describe


def whole_list(serializer: type[serializers.Serializer[Any]]) -> Any:
    """The document's shape of a short list that comes in one piece."""
    link: dict[str, Any] = {"allow_null": True, "help_text": "Always null: the list is whole."}
    name = serializer.__name__.removesuffix("Serializer")
    return inline_serializer(
        f"{name}List",
        {
            "next": serializers.CharField(**link),
            "previous": serializers.CharField(**link),
            "results": serializer(many=True),
        },
    )


def in_one_piece(results: list[Any]) -> Response:
    """A short list as an answer."""
    return Response({"next": None, "previous": None, "results": results})


class TruthField(forms.Field):
    """true or false; Django's own takes anything else for neither, and the list would not be filtered."""

    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if value.casefold() not in ("true", "1", "false", "0"):
            raise forms.ValidationError(f"{value[:50]!r} is no truth value; use true or false.")
        return value.casefold() in ("true", "1")


class TruthFilter(filters.BooleanFilter):  # it ships no types
    """`?enabled=true`, `?enabled=false`, or neither."""

    field_class = TruthField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, widget=forms.TextInput, **kwargs)
