"""What the admin's pages share: rows that only tell, lists that never count everything, and the audit log."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workflows_app import access, services

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    Pages = Paginator[Any]
else:
    ModelAdmin = admin.ModelAdmin
    Pages = Paginator

MOST_PAGED = 2000


class BoundedPaginator(Pages):
    """Counts no further than people page; what is older is found by searching."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:MOST_PAGED].count())


class FactAdmin(ModelAdmin):
    """Rows that happened: seen and searched, never added, changed or deleted here."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    sortable_by: ClassVar[tuple[str, ...]] = ()  # other orders than the written one have no index
    only_on_its_page: ClassVar[tuple[str, ...]] = ()  # what a list does not read

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related(*(self.list_select_related or ()))  # type: ignore[misc]  # always names here
        return rows.defer(*self.only_on_its_page) if _is_list(request) else rows


def _is_list(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and (match.url_name or "").endswith("_changelist")


def search_runs(term: str, prefix: str = "") -> Q:
    """Runs by what people type: an id, `#42`, a workflow's slug, an external id; each word narrows."""
    found = Q()
    for word in term.split():
        found &= _run_word(word, prefix)
    return found


def _run_word(word: str, prefix: str) -> Q:
    if identity := as_uuid(word):
        return Q(**{f"{prefix}id": identity})
    slug, mark, number = word.rpartition("#")
    if mark and number.isdecimal() and len(number) < 10:
        numbered = Q(**{f"{prefix}number": int(number)})
        return numbered & Q(**{f"{prefix}workflow__slug": slug}) if slug else numbered
    return Q(**{f"{prefix}workflow__slug__icontains": word}) | Q(**{f"{prefix}external_id": word})


def as_uuid(word: str) -> uuid.UUID | None:
    """The id a word is, if it is one."""
    try:
        return uuid.UUID(word)
    except ValueError:
        return None


def pretty(
    field: str, description: str | None = None, *, read: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any], SafeString | str]:
    """A column of a page that shows a JSON or long text field for reading."""

    def show(self: Any, row: Any) -> SafeString | str:
        value = read(row) if read else getattr(row, field)
        if value in (None, "", {}, []):
            return "–"
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        return format_html('<pre class="fact-text" tabindex="0">{}</pre>', text)

    return admin.display(description=description or field.replace("_", " "))(show)


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
        """What else the log should say of a row; never a secret."""
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
