"""Providers and prices: keys go in and never come out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from workflows_app import services
from workflows_app.admin.facts import AuditedAdmin, ModelForm, column, may, who
from workflows_app.engine.providers import provider_names
from workflows_app.engine.providers.addresses import parse_base_url
from workflows_app.execution.resources import check_provider
from workflows_app.models import PriceOverride, Provider
from workflows_app.security import credentials


class ProviderForm(ModelForm):
    """Where a provider is, and a key that is only ever written."""

    kind = forms.ChoiceField(
        choices=lambda: [(name, name) for name in provider_names()],
        help_text="“openai” is any server that speaks the OpenAI chat API.",
    )
    base_url = forms.CharField(
        label="Base URL",
        required=False,
        help_text="Such as https://api.openai.com/v1. Empty: OPENAI_BASE_URL.",
        widget=forms.TextInput(attrs={"class": "vTextField", "spellcheck": "false"}),
    )
    new_key = forms.CharField(
        label="Key",
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password"}),
    )
    remove_key = forms.BooleanField(label="Remove the stored key", required=False)

    class Meta:
        model = Provider
        fields = ("name", "kind", "base_url", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "new_key" in self.fields:
            has_key = bool(self.instance.encrypted_key)
            self.fields["new_key"].help_text = (
                "A key is stored. It is never shown; leave this empty to keep it."
                if has_key
                else "Stored encrypted and never shown again. Empty: OPENAI_API_KEY, at OPENAI_BASE_URL only."
            )
            if not has_key:
                del self.fields["remove_key"]

    def clean_base_url(self) -> str:
        text: str = self.cleaned_data["base_url"].strip()
        if text:
            try:
                parse_base_url(text)
            except ValueError as error:
                raise ValidationError(str(error)) from None
        return text

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("new_key") and data.get("remove_key"):
            self.add_error("remove_key", "Either a new key or none: choose one.")
        keeps_key = self.instance.encrypted_key and not (data.get("new_key") or data.get("remove_key"))
        before = str(self.initial.get("base_url", "")).rstrip("/")
        if keeps_key and data.get("base_url", before).rstrip("/") != before:
            # Whoever may set an address must not be able to read a key that others entered.
            message = "The stored key was given for another address; enter the key for this one."
            self.add_error("new_key", message)
        return data

    def _get_validation_exclusions(self) -> set[str]:
        # `parse_base_url` decides: the model's own check refuses names such as http://vllm:8000/v1.
        return {*super()._get_validation_exclusions(), "base_url"}  # type: ignore[misc]  # Django's own hook


class CredentialAdmin(AuditedAdmin):
    """Rows that are kept in memory: whoever changes one here has them read again."""

    def audit(self, request: HttpRequest, verb: str, obj: Model, **detail: Any) -> None:
        super().audit(request, verb, obj, **detail)
        transaction.on_commit(credentials.forget)


@admin.register(Provider)
@method_decorator(sensitive_post_parameters("new_key"), name="changeform_view")
class ProviderAdmin(CredentialAdmin):
    """Servers that answer prompts."""

    form = ProviderForm
    list_display = ("name", "kind", "address", "has_key", "enabled", "updated")
    search_fields = ("name", "base_url")
    actions = ("test_connections",)
    change_form_template = "admin/workflows_app/provider/change_form.html"

    address = column("base_url", "base URL")
    updated = column("updated_at", "updated")

    @admin.display(description="key stored", boolean=True)
    def has_key(self, provider: Provider) -> bool:
        return bool(provider.encrypted_key)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        keys = ("new_key", "remove_key") if obj and obj.encrypted_key else ("new_key",)
        if not self.has_change_permission(request, obj):
            keys = ("has_key",)
        return ("name", "kind", "base_url", "enabled", *keys)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("name", "has_key") if obj else ()  # souls call a provider by its name

    def get_urls(self) -> list[URLPattern]:
        test = path(
            "<int:pk>/test/",
            self.admin_site.admin_view(require_POST(self.test)),
            name="workflows_app_provider_test",
        )
        return [test, *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: Provider, form: ProviderForm, change: bool) -> None:
        key: str = form.cleaned_data.get("new_key", "")
        if key or form.cleaned_data.get("remove_key"):
            services.save_provider_key(obj, key, author=who(request))
        else:
            obj.save()

    def test(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Call the provider and say how it went."""
        provider = get_object_or_404(Provider, pk=pk)
        if self.has_test_permission(request):
            self._report(request, provider)
        return redirect("admin:workflows_app_provider_change", pk)

    @admin.action(description="Test connection", permissions=["test"])
    def test_connections(self, request: HttpRequest, queryset: QuerySet[Provider]) -> None:
        for provider in queryset[:10]:
            self._report(request, provider)

    def has_test_permission(self, request: HttpRequest) -> bool:
        return may(request, "workflows_app.change_provider")

    def _report(self, request: HttpRequest, provider: Provider) -> None:
        is_ok, sentence = check_provider(provider)
        self.message_user(
            request, f"{provider.name}: {sentence}", messages.SUCCESS if is_ok else messages.ERROR
        )


@admin.register(PriceOverride)
class PriceOverrideAdmin(CredentialAdmin):
    """What a model costs here."""

    list_display = ("model_name", "input_per_million_usd", "output_per_million_usd")
    search_fields = ("model_name",)

    def facts_of(self, obj: PriceOverride) -> dict[str, Any]:
        return {"input_usd": str(obj.input_per_million_usd), "output_usd": str(obj.output_per_million_usd)}
