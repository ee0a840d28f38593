"""Filters of lists that refuse what means nothing."""

from __future__ import annotations

from typing import Any

from django import forms
from django_filters import rest_framework as filters


class TruthField(forms.Field):
    """true or false; Django's own takes anything else for neither, and the list would not be filtered."""

    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if value.casefold() not in ("true", "1", "false", "0"):
            raise forms.ValidationError(f"{value[:50]!r} is no truth value; use true or false.")
        return value.casefold() in ("true", "1")


class TruthFilter(filters.BooleanFilter):  # type: ignore[misc]  # it ships no types
    """`?enabled=true`, `?enabled=false`, or neither."""

    field_class = TruthField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, widget=forms.TextInput, **kwargs)
