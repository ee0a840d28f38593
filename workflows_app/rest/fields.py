"""Serializers whose callers choose the fields, and fields that say what they accept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from workflows_app.rest.faults import Invalid


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
    """A body in which an unknown or misspelt name is a fault and not ignored."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = self._unknown(data) if isinstance(data, dict) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            # With what else is wrong: whoever mends one fault should not meet the next.
            raise serializers.ValidationError({**unknown, **error.detail}) from None  # type: ignore[dict-item]
        if unknown:
            raise serializers.ValidationError(unknown)
        return values

    def _unknown(self, data: dict[Any, Any]) -> dict[str, list[str]]:
        writable = [name for name, field in self.fields.items() if not field.read_only]
        unknown = sorted(str(name) for name in data if name not in writable)
        return {name: [f"There is no such field; there are {', '.join(writable)}."] for name in unknown[:50]}


class StrictBooleanField(serializers.BooleanField):
    """true or false, and no word or number that looks like it."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Must be true or false.")
        return data


class TextField(serializers.CharField):
    """A text as it was sent: not trimmed, and no number made one."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Must be a text.")
        return super().to_internal_value(data)


class WholeNumberField(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data != int(data):
            raise serializers.ValidationError("Must be a whole number.")
        return super().to_internal_value(int(data))


class NumberField(serializers.FloatField):
    """A JSON number."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("Must be a number.")
        return super().to_internal_value(data)


class ObjectField(serializers.DictField):
    """Any JSON object."""


class MomentField(serializers.DateTimeField):
    """A time in ISO 8601, with or without an offset (UTC then)."""

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str):
            raise serializers.ValidationError("Must be a time such as 2026-01-31T12:00:00Z.")
        return super().to_internal_value(value)
