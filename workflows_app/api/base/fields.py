"""Serializers whose callers choose the fields, and fields that say what they accept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from workflows_app.api.base.errors import Invalid


def chosen(known: Iterable[str], text: str | None) -> list[str]:
    """The fields `?fields=` leaves: those named, or all but those named with a minus."""
    known = list(known)
    if not text:
        return known
    names = text.split(",")
    unwanted = {name[1:] for name in names if name.startswith("-")}
    wanted = {name for name in names if not name.startswith("-")}
    unknown = (wanted | unwanted) - set(known)
    if unknown:
        raise Invalid(
            f"fields: {', '.join(sorted(unknown))[:100]!r} is unknown; there are {', '.join(known)}."
        )
    return [name for name in known if (not wanted or name in wanted) and name not in unwanted]


class ChosenFieldsMixin:
    """Leaves out what `?fields=` does not ask for, in the answer and in `heavy` columns of the query."""

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()  # type: ignore[misc]  # the serializer's
        request = self.context.get("request")  # type: ignore[attr-defined]
        if request is None or not hasattr(request, "query_params"):
            return fields
        keep = chosen(fields, request.query_params.get("fields"))
        return {name: fields[name] for name in keep}


class StrictSerializer(serializers.Serializer[Any]):
    """A body in which an unknown or misspelt name is an error and not ignored."""

    def to_internal_value(self, data: Any) -> Any:
        writable = [name for name, field in self.fields.items() if not field.read_only]
        names = sorted(str(name) for name in data if name not in writable) if isinstance(data, dict) else []
        unknown = {name: [f"There is no such field; there are {', '.join(writable)}."] for name in names[:50]}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            # With what else is wrong: whoever corrects one error should not meet the next.
            raise serializers.ValidationError({**unknown, **error.detail}) from None  # type: ignore[dict-item]
        if unknown:
            raise serializers.ValidationError(unknown)
        return values


class StrictType:
    """Refuses a value of another JSON type, where DRF would convert it."""

    accepts: tuple[type, ...]
    wrong_type: str

    def to_internal_value(self, data: Any) -> Any:
        if type(data) not in self.accepts:
            raise serializers.ValidationError(self.wrong_type)
        return super().to_internal_value(data)  # type: ignore[misc]  # the field's


class StrictBooleanField(StrictType, serializers.BooleanField):
    """true or false, and no word or number that looks like it."""

    accepts, wrong_type = (bool,), "Must be true or false."


class TextField(StrictType, serializers.CharField):
    """A text as it was sent: not trimmed, and no number made one."""

    accepts, wrong_type = (str,), "Must be a text."

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})


class WholeNumberField(StrictType, serializers.IntegerField):
    """A JSON number without a fraction."""

    accepts, wrong_type = (int,), "Must be a whole number."

    def to_internal_value(self, data: Any) -> int:
        is_whole = type(data) is float and data.is_integer()
        number: int = super().to_internal_value(int(data) if is_whole else data)
        return number


class NumberField(StrictType, serializers.FloatField):
    """A JSON number."""

    accepts, wrong_type = (int, float), "Must be a number."


class MomentField(StrictType, serializers.DateTimeField):
    """A time in ISO 8601, with or without an offset (UTC then)."""

    accepts, wrong_type = (str,), "Must be a time such as 2026-01-31T12:00:00Z."
