"""The audit log, as rows that nobody edits."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from workflows_app.admin.facts import FactAdmin, pretty
from workflows_app.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(FactAdmin):
    """Who did what, newest first."""

    list_display = ("at", "user", "action", "target", "in_short")
    list_select_related = ("user",)
    search_fields = ("target",)
    search_help_text = "A user, an action such as workflow.save, or part of what it was done to."
    fields = ("at", "user", "action", "target", "shown_detail")
    readonly_fields = fields

    shown_detail = pretty("detail")

    @admin.display(description="detail")
    def in_short(self, row: AuditEntry) -> str:
        said = ", ".join(
            f"{name}: {value}" for name, value in row.detail.items() if value not in ("", None, [])
        )
        return said if len(said) <= 120 else said[:119] + "…"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        for word in search_term.split():
            queryset = queryset.filter(
                Q(target__icontains=word) | Q(action__istartswith=word) | Q(user__username__iexact=word)
            )
        return queryset, False
