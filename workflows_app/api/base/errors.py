"""Every error in one shape: `{"error": {"code", "message", "details": [{"path", "line", "message"}]}}`."""

from __future__ import annotations

from typing import Any, Self

import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig
from django.core.signals import got_request_exception
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response

from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.services import Refused, Stale

log = structlog.get_logger("runsight.api")

MOST_DETAILS = 1_000
# When to call again after the database did not answer: by then the locks of a frozen process are gone.
RETRY_SECONDS = 5


class ApiError(exceptions.APIException):
    """An error with a code of ours; `details` say where."""

    status_code: int = status.HTTP_400_BAD_REQUEST
    default_code: str = "invalid"

    def __init__(self, message: str, *, details: list[Fault] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or []


class Invalid(ApiError):
    """400: what was sent cannot be right."""

    @classmethod
    def at(cls, path: str, message: str) -> Self:
        """Wrong at one place, which `details` names."""
        return cls(message, details=[Fault(path, None, message)])


class PreconditionFailed(ApiError):
    """412: somebody else was first."""

    status_code, default_code = status.HTTP_412_PRECONDITION_FAILED, "stale"


class KeyReused(ApiError):
    """422: an idempotency key came again with another body."""

    status_code, default_code = status.HTTP_422_UNPROCESSABLE_ENTITY, "idempotency_key_reused"


class PreconditionRequired(ApiError):
    """428: say which version the change is based on."""

    status_code, default_code = status.HTTP_428_PRECONDITION_REQUIRED, "precondition_required"


def as_response(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: any exception as an answer in our shape."""
    known = _known(error)
    if known is None:
        log.exception("request failed", view=type(context.get("view")).__name__)
        # Monitoring and the test client hear of it by this signal of Django's.
        request = getattr(context.get("request"), "_request", None)
        got_request_exception.send(sender=None, request=request)
        known = (500, "internal", "Something broke on our side; the server's log has the details.", [])
    code, name, message, details = known
    headers = {}
    if isinstance(error, OperationalError):
        log.warning("the database did not answer", exc_info=error)
        headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(error, exceptions.APIException):
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]  # DRF sets it so
        if getattr(error, "wait", None):
            headers["Retry-After"] = f"{error.wait:.0f}"  # type: ignore[attr-defined]
    listed = [detail.to_dict() for detail in details[:MOST_DETAILS]]
    return Response(
        {"error": {"code": name, "message": message, "details": listed}}, status=code, headers=headers
    )


def _known(error: Exception) -> tuple[int, str, str, list[Fault]] | None:
    match error:
        case InvalidDocument():
            return 400, "invalid", _count(error.faults), error.faults
        case Stale():
            return 412, error.code, error.message, []
        case Refused():
            return 409, error.code, error.message, []
        case ApiError():
            return error.status_code, error.default_code, error.message, error.details
        case exceptions.ValidationError():
            faults = faults_in(error.detail)
            return 400, "invalid", _count(faults), faults
        case exceptions.APIException():
            code = getattr(error.detail, "code", error.default_code)
            return error.status_code, "invalid" if code == "error" else str(code), str(error.detail), []
        case Http404():
            return 404, "not_found", str(error) or "There is no such thing.", []
        case DjangoPermissionDenied():
            return 403, "permission_denied", str(error) or "You may not do this.", []
        case OperationalError():
            return 503, "busy", "The database is busy or cannot be reached; try again in some seconds.", []
        case RequestDataTooBig():
            return 413, "too_large", str(error), []
    return None


def _count(faults: list[Fault]) -> str:
    if len(faults) == 1:
        return str(faults[0])
    return f"{len(faults)} errors; `details` has each with its place."


def faults_in(detail: Any, path: str = "") -> list[Fault]:
    """DRF's nested lists and dicts of messages, each with its path."""
    if isinstance(detail, dict):
        found = [faults_in(inner, _joined(path, name)) for name, inner in detail.items()]
    elif isinstance(detail, list):
        found = [
            faults_in(inner, f"{path}[{index}]" if isinstance(inner, dict | list) else path)
            for index, inner in enumerate(detail)
        ]
    else:
        return [Fault(path, None, str(detail))]
    return [fault for faults in found for fault in faults]


def _joined(path: str, name: Any) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    if name == "non_field_errors":
        return path
    return f"{path}.{name}" if path else str(name)
