"""What the admin's pages share: read-only rows, lists that never count everything, and the audit log."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workflows_app import services
from workflows_app.display import formats
from workflows_app.models import Run, Workflow
from workflows_app.security import access

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    Pages = Paginator[Any]
else:
    ModelAdmin, ModelForm, Pages = admin.ModelAdmin, forms.ModelForm, Paginator

MOST_PAGED = 2000
MOST_CHARACTERS = 8_000  # of one field; a page shows several
MOST_SEARCHED = 10_000  # newest rows that are read where no index leads to what is wanted
MOST_WORKFLOWS = 50


class BoundedPaginator(Pages):
    """Counts no further than people page; what is older is found by searching."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:MOST_PAGED].count())

    @property
    def is_cut(self) -> bool:
        """Whether there may be more."""
        return self.count >= MOST_PAGED


class FactAdmin(ModelAdmin):
    """Rows that happened: seen and searched, never added, changed or deleted here."""

    paginator = BoundedPaginator
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[tuple[str, ...]] = ()  # other orders than the written one have no index
    only_on_its_page: ClassVar[tuple[str, ...]] = ()  # what a list does not read
    without_index: ClassVar[tuple[str, ...]] = ()  # filters that look at the newest rows only

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related(*(self.list_select_related or ()))  # type: ignore[misc]  # always names here
        match = request.resolver_match
        if match is None or not (match.url_name or "").endswith("_changelist"):
            return rows
        is_filtered = any(name.partition("__")[0] in self.without_index for name in request.GET)
        if is_filtered and not request.GET.get(SEARCH_VAR):  # a search has its own bounds
            rows = rows.filter(self.newest())
        return rows.defer(*self.only_on_its_page)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        for word in search_term.split():
            queryset = queryset.filter(self.named(word))
        return queryset, False

    def named(self, word: str) -> Q:
        """The rows that a word of a search names."""
        raise NotImplementedError

    def newest(self) -> Q:
        """The rows that are looked at one by one: what is rare in a million would cost reading all of them."""
        last = self.model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
        return Q(pk__gt=(last or 0) - MOST_SEARCHED)


def runs_named(word: str, most: int = MOST_PAGED) -> Q:
    """Runs by what people type: an id, `#42`, an external id, or the newest of workflows by their slugs.

    Each through an index, whatever is stored: numbers and external ids are indexed per workflow.
    """
    with suppress(ValueError):
        return Q(pk=uuid.UUID(word))
    slug, mark, number = word.rpartition("#")
    if mark and number.isdecimal() and len(number) < 10:
        workflows = Workflow.objects.filter(slug=slug) if slug else Workflow.objects.all()
        return Q(number=int(number), workflow__in=workflows.values("pk"))
    foreign = Run.objects.filter(external_id=word, workflow__in=Workflow.objects.values("pk"))
    found = Q(pk__in=list(foreign.values_list("pk", flat=True)[:most]))
    workflows = Workflow.objects.filter(slug__icontains=word)[:MOST_WORKFLOWS]
    for workflow in workflows:
        found |= Q(workflow=workflow, number__gt=workflow.last_run_number - most // len(workflows))
    return found


def pretty(field: str, *, read: Callable[[Any], Any] | None = None) -> Callable[[Any, Any], SafeString | str]:
    """A column of a page that shows a JSON or long text field for reading, or the beginning of a long one."""

    def show(self: Any, row: Any) -> SafeString | str:
        value = read(row) if read else getattr(row, field)
        if value in (None, "", {}, []):
            return "–"
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        cut = f"The first {MOST_CHARACTERS:,} of {len(text):,} characters; the API has all of them."
        return format_html(
            '<pre class="fact-text" tabindex="0" dir="auto">{}</pre>{}',
            text[:MOST_CHARACTERS],
            format_html('<p class="help">{}</p>', cut) if len(text) > MOST_CHARACTERS else "",
        )

    return admin.display(description=field.replace("_", " "))(show)


def column(
    field: str, description: str, shown: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any], Any]:
    """A field under the name that people use for it, its values shown in their words."""

    def show(self: Any, row: Any) -> Any:
        value = getattr(row, field)
        return shown(value) if shown else value

    return admin.display(description=description, ordering=field)(show)


def verdict(passed: bool | None) -> SafeString:
    """Whether the assertions passed, as every page says it."""
    word, _icon, tone = formats.VERDICTS[formats.verdict_word(passed)]
    return format_html('<span class="said said--{}">{}</span>', tone, word)


class AuditedAdmin(ModelAdmin):
    """Every change made here is also a row of the audit log."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self.audit(request, "add", obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self.audit(request, "change", obj, fields=_changed_fields(message))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        rows: Iterable[Model] = queryset
        for row in rows:
            self.audit(request, "delete", row)
        return super().log_deletions(request, queryset)

    def audit(self, request: HttpRequest, verb: str, obj: Model, **detail: Any) -> None:
        services.audit(who(request), f"{self.opts.model_name}.{verb}", obj, **detail, **self.facts_of(obj))

    def facts_of(self, obj: Any) -> dict[str, Any]:
        """What else the log says of a row; never a secret."""
        return {}


def _changed_fields(message: Any) -> list[str]:
    if isinstance(message, str):
        return [message]
    return [name for entry in message for part in entry.values() for name in part.get("fields", ())]


def who(request: HttpRequest) -> Any:
    """The logged-in user: the admin lets nobody else in."""
    return request.user


def may(request: HttpRequest, permission: str) -> bool:
    return access.may(request.user, permission)
