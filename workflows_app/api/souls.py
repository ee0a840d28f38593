"""The library of souls."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app import services
from workflows_app.models import Soul
from workflows_app.rest.faults import Conflict
from workflows_app.rest.views import ApiView, ListView
from workflows_app.serializers import ErrorSerializer, SoulSerializer

SEE_SOULS = "workflows_app.view_soul"


class SoulFilter(filters.FilterSet):
    """Which souls."""

    class Meta:
        model = Soul
        fields = {"provider": ["exact"], "model_name": ["exact"]}


class SoulList(ListView):
    """Every soul of the library."""

    permissions = {"GET": SEE_SOULS, "POST": "workflows_app.add_soul"}
    serializer_class = SoulSerializer
    queryset = Soul.objects.all()
    filter_backends = (filters.DjangoFilterBackend,)
    filterset_class = SoulFilter
    orderings = {"slug": ("slug",)}
    default_ordering = "slug"

    @extend_schema(operation_id="souls_list", responses=SoulSerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="souls_create", responses={201: SoulSerializer, 409: ErrorSerializer})
    def post(self, request: Request) -> Response:
        """Add a soul."""
        soul = Soul(**self.read(SoulSerializer))
        if Soul.objects.filter(slug=soul.slug).exists():
            raise Conflict(f"There is a soul {soul.slug!r} already; change it with PUT souls/{soul.slug}/.")
        try:
            services.save_soul(soul, author=self.caller)
        except IntegrityError:
            raise Conflict(
                f"There is a soul {soul.slug!r} already: somebody else made it just now."
            ) from None
        return Response(SoulSerializer(soul).data, status=201)


class SoulDetail(ApiView):
    """One soul. What runs used stays in their rows, so it is never deleted here."""

    permissions = {
        "GET": SEE_SOULS,
        "PUT": "workflows_app.change_soul",
        "PATCH": "workflows_app.change_soul",
    }
    serializer_class = SoulSerializer

    @extend_schema(operation_id="souls_read")
    def get(self, request: Request, slug: str) -> Response:
        return Response(SoulSerializer(get_object_or_404(Soul, slug=slug)).data)

    @extend_schema(operation_id="souls_replace", responses={200: SoulSerializer, 409: ErrorSerializer})
    def put(self, request: Request, slug: str) -> Response:
        """Change a soul; a changed identity is a new soul version."""
        return self._change(slug, partial=False)

    @extend_schema(
        operation_id="souls_change",
        request=SoulSerializer(partial=True),
        responses={200: SoulSerializer, 409: ErrorSerializer},
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change some of a soul."""
        return self._change(slug, partial=True)

    def _change(self, slug: str, *, partial: bool) -> Response:
        soul = get_object_or_404(Soul, slug=slug)
        serializer = SoulSerializer(soul, data=self.request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        sent = serializer.validated_data
        if sent.get("slug", slug) != slug:
            raise Conflict("A soul keeps its slug: workflows name it by that. Make a new soul instead.")
        for name, value in sent.items():
            setattr(soul, name, value)
        services.save_soul(soul, author=self.caller)
        return Response(SoulSerializer(soul).data)
