"""Who is calling: a token, or the session of a logged-in browser."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from workflows_app import access
from workflows_app.models import ApiToken


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


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # it ships no types
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
