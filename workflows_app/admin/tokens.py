"""API tokens: made once, shown once, revoked, never edited."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from workflows_app import services
from workflows_app.admin.facts import AuditedAdmin, ModelForm, column, who
from workflows_app.models import ApiToken
from workflows_app.security import access

LIFETIMES = {"30": "30 days", "90": "90 days", "365": "a year", "": "never"}


class TokenForm(ModelForm):
    """What a new token is for, and what it may do."""

    role = forms.ChoiceField(
        choices=[("", "everything its user may do"), *((name, name) for name in access.ROLES)],
        required=False,
        help_text="A token never holds more than its user does, whatever is chosen here.",
    )
    days = forms.ChoiceField(
        label="Expires after", choices=list(LIFETIMES.items()), required=False, initial="90"
    )

    class Meta:
        model = ApiToken
        fields = ("user", "name", "role")

    maker: User

    def clean_user(self) -> User:
        user: User = self.cleaned_data["user"]
        if user.is_superuser and not self.maker.is_superuser:
            raise ValidationError("Only a superuser makes tokens of a superuser.")
        return user

    @property
    def lifetime(self) -> timedelta | None:
        days = self.cleaned_data.get("days")
        return timedelta(days=int(days)) if days else None


@admin.register(ApiToken)
class ApiTokenAdmin(AuditedAdmin):
    """The keys of programs: who made them, what they may do, when they were last used."""

    form = TokenForm
    list_display = (
        "name",
        "user",
        "begins_with",
        "role_limit",
        "state",
        "created_at",
        "expires_at",
        "last_used_at",
    )
    list_select_related = ("user",)
    list_filter = ("role",)
    search_fields = ("name", "user__username", "prefix")
    raw_id_fields = ("user",)
    actions = ("revoke",)
    _facts = (*list_display, "revoked_at")

    begins_with = column("prefix", "begins with", "{}…".format)
    role_limit = column("role", "limited to", lambda role: role or "not limited")

    @admin.display(description="state")
    def state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return "revoked"
        return "expired" if token.expires_at and token.expires_at <= timezone.now() else "valid"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self._facts if obj else ("user", "name", "role", "days")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self._facts if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.maker = request.user
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return access.may(request.user, "workflows_app.change_apitoken")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A deleted row still has its trace in the audit log; one that opens doors is revoked first.
        return obj is not None and bool(obj.revoked_at) and super().has_delete_permission(request, obj)

    @sensitive_variables("key")
    def save_model(self, request: HttpRequest, obj: ApiToken, form: TokenForm, change: bool) -> None:
        token, key = services.make_token(
            obj.user, obj.name, role=obj.role, lifetime=form.lifetime, author=who(request)
        )
        obj.pk, obj.prefix, obj.expires_at = token.pk, token.prefix, token.expires_at
        request.made_key = key  # type: ignore[attr-defined]  # shown by response_add and kept nowhere

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The service writes the audit log itself."""
        return super(AuditedAdmin, self).log_addition(request, obj, message)

    @sensitive_variables("key")
    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The one page that shows the key: not redirected to, so it cannot be opened again."""
        key: str = request.made_key  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token {obj.name}",
            "opts": self.opts,
            "token": obj,
            "key": key,
            "has_view_permission": True,
        }
        response = TemplateResponse(request, "admin/workflows_app/apitoken/made.html", context)
        response["Cache-Control"] = "no-store"
        response.shows_secret = True  # type: ignore[attr-defined]  # it is not compressed
        return response

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        count = sum(
            services.revoke_token(token, author=who(request)) for token in queryset.select_related("user")
        )
        self.message_user(
            request,
            f"Revoked {count} token{'' if count == 1 else 's'}; programs using them get 401 from now on.",
        )
