"""What a caller may do: each view names a permission per method, `access.may` decides."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from workflows_app import access
from workflows_app.rest.authentication import token_of


class AccessPermission(BasePermission):
    """Reads the view's `permissions`: method to permission name."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method.lower() not in view.allowed_methods_lower():
            return True  # it becomes 405, which says more than 403
        permission = view.permissions.get(method)
        if permission is None:
            raise LookupError(f"{type(view).__name__} names no permission for {method}.")
        access.check(request.user, permission, token_of(request))
        return True


class RateThrottle(SimpleRateThrottle):
    """So many calls a minute for each token, and for each user's sessions together."""

    scope = "api"

    def get_rate(self) -> str | None:
        rate: str | None = settings.API_RATE  # read at each call, so that tests may change it
        return rate

    def get_cache_key(self, request: Request, view: Any) -> str:
        token = token_of(request)
        who = f"token-{token.pk}" if token else f"user-{request.user.pk}"
        return self.cache_format % {"scope": self.scope, "ident": who}
