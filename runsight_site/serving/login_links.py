"""One-time log-in links: printed in the terminal that started the server, good for ten minutes on that machine."""

from __future__ import annotations

import secrets
import time
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from runsight_site.environment import is_loopback
from runsight_site.serving import demo

LIFETIME_S = 600
FORWARDING_HEADERS = ("X-Forwarded-For", "X-Real-Ip", "Forwarded")
REFUSAL = (
    "This log-in link has been used, is older than ten minutes, or is for the server's own machine only."
)


# Token: user and time of issue. In memory, for the process that prints a link is the one that answers it.
_issued: dict[str, tuple[int, float]] = {}


def issue(user: User) -> str:
    """A fresh link's path."""
    token = secrets.token_urlsafe(32)
    _issued[token] = user.pk, time.time()
    return reverse("login-once", args=[token])


def redeem(token: str) -> User | None:
    """The link's user, once."""
    user, issued_at = _issued.pop(token, (0, 0.0))
    if issued_at + LIFETIME_S < time.time():
        return None
    return User.objects.filter(pk=user, is_active=True).first()


@login_not_required
@never_cache
@require_GET
def log_in_once(request: HttpRequest, token: str) -> HttpResponse:
    """Log in whoever opens the link first, on the machine itself."""
    user = redeem(token) if is_from_this_machine(request) else None
    if user is None:
        messages.error(request, REFUSAL)
        return redirect("login")
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(demo.landing_path())


def is_from_this_machine(request: HttpRequest) -> bool:
    """Whether client and host name are loopback and no proxy forwards for somebody else."""
    host = urlsplit(f"//{request.get_host()}").hostname or ""
    return (
        is_loopback(request.META.get("REMOTE_ADDR") or "")
        and is_loopback(host)
        and not any(name in request.headers for name in FORWARDING_HEADERS)
    )
