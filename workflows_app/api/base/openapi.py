"""What the OpenAPI document says about every call alike."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension

_ERRORS = {
    "400": "What was sent cannot be right; `details` says where.",
    "401": "Nobody is logged in, or the token is unknown, expired or revoked.",
    "403": "You may not do this; the message names the permission and the role that has it.",
    "404": "There is no such thing.",
    "409": "It cannot be done in the state it is in.",
    "412": "Somebody saved meanwhile: `If-Match` names another version than the current one.",
    "413": "The body is too large.",
    "415": "The body is not `application/json`.",
    "422": "This `Idempotency-Key` came before with another body.",
    "428": "Say with `If-Match` which version you started from.",
    "429": "Too many calls; `Retry-After` says when to go on.",
    "503": "The database is busy; `Retry-After` says when to try again.",
}


_OF_SOME = ("409", "412", "422", "428")  # only the calls that name them answer so

# `?fields=` may leave out any of their fields.
_CHOSEN = ("Run", "Node", "WorkflowSummary")


class StrictBodies(OpenApiSerializerExtension):  # it ships no types
    """Says in the document that a body may have no unknown names."""

    target_class = "workflows_app.api.base.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if direction == "request":
            schema["additionalProperties"] = False
        return schema


def only_the_api(endpoints: list[Any], **_: Any) -> list[Any]:
    """Leave out what is not under /api/."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/")]


def add_errors(result: dict[str, Any], generator: Any, request: Any, public: Any) -> dict[str, Any]:
    """Every operation may answer with an error in our one shape."""
    for name in _CHOSEN:
        result["components"]["schemas"][name].pop("required", None)
    for path, item in result["paths"].items():
        for operation in item.values():
            has_body = "requestBody" in operation
            for code, description in _ERRORS.items():
                if code in _OF_SOME or (code == "404" and "{" not in path):
                    continue
                if code in ("413", "415") and not has_body:
                    continue
                content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
                operation["responses"].setdefault(code, {"description": description, "content": content})
            for code, response in operation["responses"].items():
                response["description"] = response["description"] or _ERRORS.get(code, "As asked.")
    return result


def add_summaries(result: dict[str, Any], generator: Any, request: Any, public: Any) -> dict[str, Any]:
    """What an operation does, in a line: its description up to where it goes into details."""
    for item in result["paths"].values():
        for operation in item.values():
            first = re.split(r"[.;?](?:\s|$)", operation["description"], maxsplit=1)[0]
            operation.setdefault("summary", first)
    return result
