"""Filters of lists, in the words of the columns that they filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet, TextChoices
from django.http import HttpRequest

from workflows_app.display import formats

if TYPE_CHECKING:
    FieldListFilter = admin.FieldListFilter
else:
    FieldListFilter = object


class InWords(FieldListFilter):
    """A filter with a title of its own, and other words for its choices than Django has."""

    heading: ClassVar[str] = ""  # the field's name without it
    words: ClassVar[Mapping[str, str]] = {}  # by what Django says

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = self.heading or self.title

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for choice in super().choices(changelist):
            label = str(choice["display"])
            yield {**choice, "display": self.words.get(label, label)}


class VerdictFilter(InWords, admin.BooleanFieldListFilter):
    """Passed or failed as a list of one: for `NOT eval_passed` SQLite uses no index."""

    heading = "verdict"
    words = {
        said: formats.VERDICTS[word][0]
        for said, word in (("Yes", "passed"), ("No", "failed"), ("Unknown", "none"))
    }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        if self.lookup_val not in ("0", "1"):
            return super().queryset(request, queryset)
        return queryset.filter(**{f"{self.field_path}__in": [self.lookup_val == "1"]})


def choices_in_words(choices: type[TextChoices], words: Mapping[str, str]) -> type[InWords]:
    """A filter of a field with choices, in which `words` replace some of their labels."""
    by_label = {label: words.get(value, label) for value, label in choices.choices}
    return type("WordedChoices", (InWords, admin.ChoicesFieldListFilter), {"words": by_label})
