"""Every fault in one shape: `{"error": {"code", "message", "details": [{"path", "line", "message"}]}}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig
from django.core.signals import got_request_exception
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.rest.faults import ApiFault
from workflows_app.services import Refused, Stale

log = structlog.get_logger("runsight.api")

MOST_DETAILS = 1_000


def as_response(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: any exception as an answer in our shape."""
    fault = _known(error)
    if fault is None:
        log.exception("request failed", view=type(context.get("view")).__name__)
        # Django's own way to tell monitoring and the test client.
        request = getattr(context.get("request"), "_request", None)
        got_request_exception.send(sender=None, request=request)
        fault = (500, "internal", "Something broke on our side; the server's log has the details.", [])
    set_rollback()
    code, name, message, details = fault
    headers = {}
    if isinstance(error, exceptions.APIException):
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]  # DRF sets it so
        if getattr(error, "wait", None):
            headers["Retry-After"] = f"{error.wait:.0f}"  # type: ignore[attr-defined]
    return Response(body(name, message, details), status=code, headers=headers)


def body(code: str, message: str, details: list[Fault] | None = None) -> dict[str, Any]:
    """The body of a fault."""
    listed = [detail.to_dict() for detail in (details or [])[:MOST_DETAILS]]
    return {"error": {"code": code, "message": message, "details": listed}}


def _known(error: Exception) -> tuple[int, str, str, list[Fault]] | None:
    match error:
        case InvalidDocument():
            return 400, "invalid", _count(error.faults), error.faults
        case Stale():
            return 412, error.code, error.message, []
        case Refused():
            return 409, error.code, error.message, []
        case ApiFault():
            return error.status_code, error.default_code, error.message, error.details
        case exceptions.ValidationError():
            faults = faults_in(error.detail)
            return 400, "invalid", _count(faults), faults
        case exceptions.APIException():
            code = getattr(error.detail, "code", error.default_code)
            return error.status_code, _CODES.get(code, str(code)), str(error.detail), []
        case Http404():
            return 404, "not_found", str(error) or "There is no such thing.", []
        case DjangoPermissionDenied():
            return 403, "permission_denied", str(error) or "You may not do this.", []
        case RequestDataTooBig():
            return 413, "too_large", str(error), []
    return None


_CODES = {"error": "invalid", "unsupported_media_type": "unsupported_media_type"}


def _count(faults: list[Fault]) -> str:
    if len(faults) == 1:
        return str(faults[0])
    return f"{len(faults)} faults; `details` has each with its place."


def faults_in(detail: Any) -> list[Fault]:
    """DRF's validation messages as faults, each with its path."""
    return list(_flat(detail, ""))


def _flat(detail: Any, path: str) -> Iterator[Fault]:
    """DRF's nested lists and dicts of messages, each with its path."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            joined = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            yield from _flat(inner, f"{path}[{name}]" if isinstance(name, int) else joined)
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            is_place = isinstance(inner, dict | list)
            yield from _flat(inner, f"{path}[{index}]" if is_place else path)
    else:
        yield Fault(path, None, str(detail))
