"""Users and groups: Django's own pages, kept in the audit log, and no way to gain permissions by editing others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from workflows_app.admin.facts import AuditedAdmin
from workflows_app.security import access

if TYPE_CHECKING:
    People = UserAdmin[User]
else:
    People = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(AuditedAdmin, People):
    """Who may log in, and in which role."""

    list_display = ("username", "email", "roles", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    readonly_fields = ("last_login", "date_joined")

    @admin.display(description="roles")
    def roles(self, user: User) -> str:
        return ", ".join(sorted(group.name for group in user.groups.all())) or "–"

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).prefetch_related("groups")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # Whoever may edit users must not gain every permission by it.
        beyond = () if request.user.is_superuser else ("is_superuser", "user_permissions")
        return (*super().get_readonly_fields(request, obj), *beyond)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return not is_above and super().has_change_permission(request, obj)

    def facts_of(self, obj: User) -> dict[str, Any]:
        return {
            "roles": sorted(obj.groups.values_list("name", flat=True)) if obj.pk else [],
            "is_active": obj.is_active,
            "is_staff": obj.is_staff,
            "is_superuser": obj.is_superuser,
        }


ROLE_FIELDS = ("name", "allowed")


@admin.register(Group)
class RoleAdmin(AuditedAdmin, GroupAdmin):
    """The roles, and groups of one's own."""

    list_display = ("name", "is_role")

    @admin.display(description="role", boolean=True)
    def is_role(self, group: Group) -> bool:
        return group.name in access.ROLES

    # A role's permissions are written in the code and set again after every migration.
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not (obj and self.is_role(obj)) and super().has_delete_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not (obj and self.is_role(obj)) and super().has_change_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ROLE_FIELDS if obj and self.is_role(obj) else super().get_fields(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ROLE_FIELDS if obj and self.is_role(obj) else super().get_readonly_fields(request, obj)

    @admin.display(description="permissions")
    def allowed(self, group: Group) -> SafeString:
        names = group.permissions.order_by("content_type__app_label", "content_type__model", "codename")
        rows = format_html_join("", "<li>{}</li>", ((name,) for name in names.values_list("name", flat=True)))
        return format_html('<ul class="uses uses--columns">{}</ul>', rows)

    def facts_of(self, obj: Group) -> dict[str, Any]:
        return {"permissions": obj.permissions.count()} if obj.pk else {}
