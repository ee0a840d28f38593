"""Who is calling, by token or by session, and what they may do: each view names a permission per method."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from workflows_app.models import ApiToken
from workflows_app.security import access


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Token <key>`."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        scheme, _, key = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "token":
            return None
        token = access.token_for(key.strip())
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked; make a new one.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        # Named first in the settings, so that nobody logged in is 401 and not 403.
        return "Token"


class TokenScheme(OpenApiAuthenticationExtension):  # it ships no types
    """The token in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token <key>`; make one with `runsight token <user> --name ci`.",
        }


def token_of(request: Any) -> ApiToken | None:
    """The token a request came with, if it was not a session."""
    return request.auth if isinstance(getattr(request, "auth", None), ApiToken) else None


class AccessPermission(BasePermission):
    """Reads the view's `permissions`: method to permission name."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in view.allowed_methods:
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
