"""The API's own description, its browsable docs, and the answer to paths that are none."""

from __future__ import annotations

from typing import Any

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.http import Http404
from django.urls import reverse
from django.utils.decorators import method_decorator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from workflows_app.api.base.permissions import AccessPermission, TokenAuthentication
from workflows_app.api.base.views import ApiView
from workflows_app.security import access


@extend_schema(exclude=True)
class Root(ApiView):
    """Where to begin."""

    permissions = {"GET": access.SEE}

    def get(self, request: Request) -> Response:
        return Response(
            {"schema": request.build_absolute_uri("schema/"), "docs": request.build_absolute_uri("docs/")}
        )


class Described(ApiView):
    """Guarded like every other path: the generator's own views let everybody in."""

    permissions = {"GET": access.SEE}
    permission_classes = (AccessPermission,)
    authentication_classes = (TokenAuthentication, SessionAuthentication)


class Schema(Described, SpectacularJSONAPIView):
    """The OpenAPI 3.1 document."""


# Swagger UI styles its own elements; its script comes from a file of ours, so only style-src gives way.
@method_decorator(csp_update({"style-src": [SELF, UNSAFE_INLINE]}), name="dispatch")
class Docs(Described, SpectacularSwaggerSplitView):
    """The document to read and try out, by Swagger UI from an installed package."""

    template_name = "site/api_docs.html"

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view: Any = super().as_view(**initkwargs)
        view.login_required = True  # a page: whoever is not logged in gets the log-in page, not 401
        return view


@extend_schema(exclude=True)
class NoSuchPath(ApiView):
    """Any other path under /api/, for every method."""

    permissions = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), access.SEE)

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        docs = reverse("api-docs")
        hint = "" if request.path.endswith("/") else f" Did you mean {request.path[:200]}/?"
        raise Http404(f"There is nothing at {request.path[:200]}.{hint} The paths are listed at {docs}.")

    post = put = patch = delete = get
