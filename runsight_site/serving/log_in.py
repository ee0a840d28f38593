"""Logging in costs little, however many try at once: few passwords are hashed together, few tries taken from an address."""

from __future__ import annotations

import threading
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.throttling import SimpleRateThrottle

from runsight_site.serving.clients import client_address

# Each takes 100 MB.
HASHED_AT_ONCE = 2
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)
_counting = threading.Lock()


class PatientPasswordHasher(Argon2PasswordHasher):
    """Argon2, a few at a time; the others wait."""

    def encode(self, password: str, salt: str) -> str:
        with _hashing:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _hashing:
            return super().verify(password, encoded)


class LogInThrottle(SimpleRateThrottle):
    """So many tries a minute for each address."""

    scope = "login"

    def get_rate(self) -> str | None:
        rate: str | None = settings.LOG_IN_RATE
        return rate

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": client_address(request)}


class LogIn(LoginView):
    """Django's log-in, for so many tries a minute."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        throttle = LogInThrottle()
        with _counting:  # or tries that come together would all count as the first
            is_allowed = throttle.allow_request(request, self)  # type: ignore[arg-type]  # it passes it to us only
        if is_allowed:
            return super().post(request, *args, **kwargs)
        response = render(request, "registration/locked.html", status=429)
        response["Retry-After"] = str(max(1, round(throttle.wait() or 0)))
        return response
