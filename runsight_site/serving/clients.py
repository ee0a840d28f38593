"""Who asked, and that nobody in between keeps the answer."""

from __future__ import annotations

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware


def client_address(request: HttpRequest) -> str:
    """The address that the outermost trusted proxy saw; what a client writes into the header itself is left of it."""
    seen = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    proxies = settings.RUNSIGHT_TRUSTED_PROXIES
    if proxies and seen:
        return seen[-min(proxies, len(seen))]
    return request.META.get("REMOTE_ADDR") or ""


@sync_and_async_middleware
def private_middleware(get_response):  # type: ignore[no-untyped-def]  # one of two kinds of function
    """Answers are for one user and not kept anywhere, unless a view says otherwise."""

    def marked(response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    if iscoroutinefunction(get_response):

        async def respond_later(request: HttpRequest) -> HttpResponseBase:
            return marked(await get_response(request))

        return respond_later

    def respond(request: HttpRequest) -> HttpResponseBase:
        return marked(get_response(request))

    return respond
