"""The library of souls: where each is used, and its versions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from workflows_app import services
from workflows_app.admin.facts import ModelAdmin, ModelForm, column, who
from workflows_app.documents.usage import uses_of
from workflows_app.models import Soul

MOST_VERSIONS = 20


class SoulForm(ModelForm):
    """A soul, and the state of it that was on the page."""

    based_on = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["based_on"] = self.instance.fingerprint

    def clean(self) -> dict[str, Any] | None:
        based_on = self.cleaned_data.get("based_on")
        current = Soul.objects.select_for_update().filter(pk=self.instance.pk).first()
        if based_on and current and based_on != current.fingerprint:
            raise ValidationError("Somebody saved this soul meanwhile. Open it again and repeat your change.")
        return super().clean()


@admin.register(Soul)
class SoulAdmin(ModelAdmin):
    """Agents' identities."""

    list_display = ("slug", "role", "provider", "model_name", "temperature", "version", "updated")
    form = SoulForm
    search_fields = ("slug", "name", "role", "model_name")
    list_filter = ("provider",)
    fields = (
        "slug", "name", "role", "system_prompt", "provider", "model_name", "temperature", "max_tokens", "avatar_color",
        "used_in", "version_pages", "based_on",
    )  # fmt: skip

    updated = column("updated_at", "updated")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = ("used_in", "version_pages")
        return ("slug", *shown) if obj else shown  # workflows name a soul by its slug

    @admin.display(description="used in")
    def used_in(self, soul: Soul) -> SafeString | str:
        uses = uses_of(soul.slug) if soul.pk else []
        if not uses:
            return "No workflow's current version."
        rows = ((use.workflow.get_absolute_url(), use.workflow.slug, ", ".join(use.blocks)) for use in uses)
        return format_html(
            '<ul class="uses">{}</ul>', format_html_join("", '<li><a href="{}">{}</a>: {}</li>', rows)
        )

    @admin.display(description="versions")
    def version_pages(self, soul: Soul) -> SafeString | str:
        """The latest ones; the page of each shows what it changed."""
        page = f"{soul.get_absolute_url()}versions/"
        rows = soul.versions.all()[:MOST_VERSIONS] if soul.pk else []
        links = ((f"{page}{row.version}/", row.version, f"{row.created_at:%Y-%m-%d}") for row in rows)
        found = format_html_join("", '<li><a href="{}">{}</a>, {}</li>', links)
        return format_html('<ul class="uses">{}</ul>', found) if found else "None yet."

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and super().has_delete_permission(request, obj) and not uses_of(obj.slug)

    def save_model(self, request: HttpRequest, obj: Soul, form: Any, change: bool) -> None:
        services.save_soul(obj, author=who(request))

    def delete_model(self, request: HttpRequest, obj: Soul) -> None:
        services.audit(who(request), "soul.delete", obj.slug)
        super().delete_model(request, obj)

    def view_on_site(self, obj: Soul) -> str:
        return obj.get_absolute_url()
