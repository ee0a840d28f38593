"""The bases of every endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app.models import ApiToken
from workflows_app.rest.authentication import token_of
from workflows_app.rest.faults import Invalid
from workflows_app.rest.paging import Pages

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


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

    @classmethod
    def allowed_methods_lower(cls) -> list[str]:
        return [name for name in cls.http_method_names if hasattr(cls, name)]

    @property
    def caller(self) -> AbstractBaseUser:
        """Who calls; the permission class lets nobody else through."""
        return cast("AbstractBaseUser", self.request.user)

    @property
    def token(self) -> ApiToken | None:
        return token_of(self.request)

    def read(self, serializer: Any, data: Any = None) -> dict[str, Any]:
        """What was sent, checked; anything wrong is 400 with its place."""
        sent = self.request.data if data is None else data
        checked = serializer(data=sent, context=self.get_serializer_context())
        checked.is_valid(raise_exception=True)
        values: dict[str, Any] = checked.validated_data
        return values


class ListView(ApiView):
    """A list in pages. `orderings` maps what a caller may ask for to columns that have an index."""

    pagination_class = Pages
    orderings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    default_ordering: ClassVar[str] = ""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def ordering_of(self, request: Request) -> tuple[str, ...]:
        wanted = request.query_params.get("ordering", self.default_ordering)
        try:
            return self.orderings[wanted]
        except KeyError:
            known = ", ".join(self.orderings)
            raise Invalid(f"ordering: {wanted[:30]!r} will not do; use one of {known}.") from None


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
