"""The refusals an endpoint raises, each with its status and code."""

from __future__ import annotations

from rest_framework import exceptions, status

from workflows_app.engine.definition import Fault


class ApiFault(exceptions.APIException):
    """A fault with a code of ours; `details` say where."""

    status_code: int = status.HTTP_400_BAD_REQUEST
    default_code: str = "invalid"

    def __init__(self, message: str, *, details: list[Fault] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or []


class Invalid(ApiFault):
    """400: what was sent cannot be right."""


class Conflict(ApiFault):
    """409: as things stand it cannot be done."""

    status_code, default_code = status.HTTP_409_CONFLICT, "conflict"


class PreconditionFailed(ApiFault):
    """412: somebody else was first."""

    status_code, default_code = status.HTTP_412_PRECONDITION_FAILED, "stale"


class TooLarge(ApiFault):
    """413: more than this call takes."""

    status_code, default_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE, "too_large"


class KeyReused(ApiFault):
    """422: an idempotency key came again with another body."""

    status_code, default_code = status.HTTP_422_UNPROCESSABLE_ENTITY, "idempotency_key_reused"


class PreconditionRequired(ApiFault):
    """428: say which version the change is based on."""

    status_code, default_code = status.HTTP_428_PRECONDITION_REQUIRED, "precondition_required"
