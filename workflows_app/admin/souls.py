"""The library of souls: where each is used, and what it was before."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from workflows_app import services
from workflows_app.admin.facts import ModelAdmin, column, who
from workflows_app.diff import side_by_side
from workflows_app.models import Soul
from workflows_app.soul_usage import uses_of

MOST_VERSIONS = 50
MOST_COMPARED = 30_000  # characters, of all versions that are shown together


@admin.register(Soul)
class SoulAdmin(ModelAdmin):
    """Agents' identities."""

    list_display = ("slug", "role", "provider", "model_name", "temperature", "version", "updated")
    search_fields = ("slug", "name", "role", "model_name")
    list_filter = ("provider",)
    change_form_template = "admin/workflows_app/soul/change_form.html"
    fields = (
        "slug", "name", "role", "system_prompt", "provider", "model_name", "temperature", "max_tokens", "avatar_color",
        "used_in",
    )  # fmt: skip

    updated = column("updated_at", "updated")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("slug", "used_in") if obj else ("used_in",)  # workflows name a soul by its slug

    @admin.display(description="used in")
    def used_in(self, soul: Soul) -> SafeString | str:
        uses = uses_of(soul.slug) if soul.pk else []
        if not uses:
            return "No workflow's current version."
        rows = ((use.workflow.get_absolute_url(), use.workflow.slug, ", ".join(use.blocks)) for use in uses)
        return format_html(
            '<ul class="uses">{}</ul>', format_html_join("", '<li><a href="{}">{}</a>: {}</li>', rows)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and super().has_delete_permission(request, obj) and not uses_of(obj.slug)

    def save_model(self, request: HttpRequest, obj: Soul, form: Any, change: bool) -> None:
        services.save_soul(obj, author=who(request))

    def delete_model(self, request: HttpRequest, obj: Soul) -> None:
        services.audit(who(request), "soul.delete", obj.slug)
        super().delete_model(request, obj)

    def view_on_site(self, obj: Soul) -> str:
        return obj.get_absolute_url()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        soul = self.get_object(request, object_id)
        versions = _versions(soul, request.GET.get("version", "")) if soul is not None else []
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), "versions": versions}
        )


def _versions(soul: Soul, asked: str) -> list[dict[str, Any]]:
    """Newest first, each with what changed since the one before; of very long ones only those that are asked for."""
    rows = list(soul.versions.select_related("author")[: MOST_VERSIONS + 1])
    told: list[dict[str, Any]] = []
    room = MOST_COMPARED
    for row, before in zip_longest(rows[:MOST_VERSIONS], rows[1:]):
        one, other = before.text if before else "", row.text
        room -= len(one) + len(other)
        is_shown = room >= 0 or row.version == asked
        told.append(
            {
                "row": row,
                "is_current": row.version == soul.version,
                "is_open": row.version == asked,
                "before": before,
                "diff": side_by_side(one, other) if before and is_shown else None,
            }
        )
    return told
