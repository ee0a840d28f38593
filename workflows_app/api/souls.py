"""The library of souls."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app import services
from workflows_app.api.base.etags import IF_MATCH, check_if_match
from workflows_app.api.base.views import ApiView, ListView, list_schema
from workflows_app.api.serializers import ErrorSerializer, SoulSerializer
from workflows_app.models import Soul

SEE_SOULS = "workflows_app.view_soul"


def answer(soul: Soul, status: int = 200) -> Response:
    """A soul as an answer, with its ETag."""
    return Response(SoulSerializer(soul).data, status=status, headers={"ETag": f'"{soul.fingerprint}"'})


@list_schema("souls_list")
class SoulList(ListView):
    """Every soul of the library."""

    permissions = {"GET": SEE_SOULS, "POST": "workflows_app.add_soul"}
    serializer_class = SoulSerializer
    queryset = Soul.objects.all()
    filterset_fields = ("provider", "model_name")
    orderings = {"slug": ("slug",)}
    default_ordering = "slug"

    @extend_schema(operation_id="souls_create", responses={201: SoulSerializer, 409: ErrorSerializer})
    def post(self, request: Request) -> Response:
        """Add a soul."""
        soul = Soul(**self.read(SoulSerializer))
        taken = services.Refused(
            "conflict", f"There is a soul {soul.slug!r} already; change it with PUT souls/{soul.slug}/."
        )
        if Soul.objects.filter(slug=soul.slug).exists():
            raise taken
        try:
            services.save_soul(soul, author=self.caller)
        except IntegrityError:
            raise taken from None  # somebody else made it just now
        return answer(soul, status=201)


class SoulDetail(ApiView):
    """One soul. What runs used stays in their rows, so it is never deleted here."""

    permissions = {
        "GET": SEE_SOULS,
        "PUT": "workflows_app.change_soul",
        "PATCH": "workflows_app.change_soul",
    }
    serializer_class = SoulSerializer
    _changed = {200: SoulSerializer, 409: ErrorSerializer, 412: ErrorSerializer}

    @extend_schema(operation_id="souls_read")
    def get(self, request: Request, slug: str) -> Response:
        return answer(get_object_or_404(Soul, slug=slug))

    @extend_schema(operation_id="souls_replace", parameters=[IF_MATCH], responses=_changed)
    def put(self, request: Request, slug: str) -> Response:
        """Change a soul; a changed identity is a new soul version."""
        return self._change(slug, partial=False)

    @extend_schema(
        operation_id="souls_change",
        request=SoulSerializer(partial=True),
        parameters=[IF_MATCH],
        responses=_changed,
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change some of a soul."""
        return self._change(slug, partial=True)

    @transaction.atomic
    def _change(self, slug: str, *, partial: bool) -> Response:
        soul = get_object_or_404(Soul.objects.select_for_update(), slug=slug)
        sent = self.read(SoulSerializer, instance=soul, partial=partial)
        if sent.get("slug", slug) != slug:
            message = "A soul keeps its slug: workflows name it by that. Make a new soul instead."
            raise services.Refused("conflict", message)
        check_if_match(self.request, f'"{soul.fingerprint}"', f"{slug} has changed")
        for name, value in sent.items():
            setattr(soul, name, value)
        services.save_soul(soul, author=self.caller)
        return answer(soul)
