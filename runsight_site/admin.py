"""The admin site: our log-in, our look, and a dashboard as its first page."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.contrib.admin.options import TO_FIELD_VAR
from django.contrib.admin.templatetags import admin_list
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache

from runsight_site.templatetags.runsight import icon

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

ORDER = ("workflows_app", "evals_app", "auth")
YES_NO = {True: ("check", "Yes"), False: ("x", "No"), None: ("none", "Unknown")}


def yes_or_no(value: bool | None) -> SafeString:
    """A word with an icon, where Django draws bright pictures that are read out as "True"."""
    drawing, word = YES_NO[value]
    return format_html('<span class="said said--{}">{}{}</span>', word.lower(), icon(drawing), word)


# Django has no hook for it; its lists and its pages both look this up.
admin_list._boolean_icon = yes_or_no  # type: ignore[attr-defined]


class CountedChangeList(ChangeList):
    """A list that says which of its rows it shows, filtered by what it offers and by nothing else."""

    def get_filters(self, request: HttpRequest) -> Any:
        """Django's own filters; another lookup could search hidden columns or run an endless pattern."""
        filters = super().get_filters(request)
        offered = {f"{self.date_hierarchy}__{bound}" for bound in ("gte", "lt")}
        for lookup in filters[2].keys() - offered:
            raise DisallowedModelAdminLookup(f"This list has no filter {lookup!r}.")
        return filters

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.show_admin_actions = bool(self.result_count)

    @property
    def shown_rows(self) -> str:
        """Such as "51 to 100 of 212"."""
        if not self.multi_page:
            return f"{self.result_count:,} in all"
        first = (self.page_num - 1) * self.list_per_page + 1
        last = min(first + self.list_per_page - 1, self.result_count)
        is_cut = getattr(self.paginator, "is_cut", False)
        rest = f"the first {self.result_count:,}; search for others" if is_cut else f"{self.result_count:,}"
        return f"{first:,} to {last:,} of {rest}"

    @property
    def without_search(self) -> str:
        """The same list with its filters only."""
        return self.get_query_string(remove=[SEARCH_VAR])


class PagedAdmin(ModelAdmin):
    """What every model's admin is here, Django's and others' too: no list of all rows at once."""

    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CountedChangeList


class RunsightAdminSite(admin.AdminSite):
    """Django's admin under our name, for those who edit or administer."""

    site_header = "Runsight"
    site_title = "Runsight admin"
    index_title = "Administration"
    index_template = "admin/dashboard.html"
    empty_value_display = "–"
    enable_nav_sidebar = True

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Put `PagedAdmin` under every class that is registered, whoever wrote it."""
        written = admin_class or ModelAdmin
        bases = (PagedAdmin,) if issubclass(PagedAdmin, written) else (written, PagedAdmin)
        super().register(model_or_iterable, types.new_class(written.__name__, bases), **options)

    def has_permission(self, request: HttpRequest) -> bool:
        from workflows_app.security import access

        return access.may_enter_admin(request.user)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """A view of the admin; an empty `_to_field` is refused like a wrong one, for Django's views break on it."""

        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if "" in (request.GET.get(TO_FIELD_VAR), request.POST.get(TO_FIELD_VAR)):
                raise DisallowedModelAdminToField("The field that is referenced has no name.")
            return view(request, *args, **kwargs)

        return cast("View", super().admin_view(checked, cacheable))

    @method_decorator(never_cache)
    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """There is one log-in page, the one that slows guessing down."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied("The admin is for those who may edit workflows or administer this site.")
        wanted = request.GET.get("next", "")
        if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
            wanted = resolve_url("admin:index")
        return redirect(wanted) if request.user.is_authenticated else redirect_to_login(wanted)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """There is one page for it, which those outside the admin have too."""
        return redirect("password")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """What people came for first; the log-in guard last."""
        apps = super().get_app_list(request, app_label)
        return sorted(
            apps, key=lambda app: ORDER.index(app["app_label"]) if app["app_label"] in ORDER else len(ORDER)
        )

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from runsight_site.pages import admin_dashboard
        from workflows_app.security import access

        figures = admin_dashboard.figures(request.user) if access.may(request.user, access.SEE) else None
        return super().index(request, {**(extra_context or {}), "dashboard": figures})
