"""Workflows: the list, the editor of one, and its versions."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from workflows_app import services
from workflows_app.admin.facts import ModelAdmin, column, may, who
from workflows_app.admin.filters import InWords
from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.slugs import slug_from
from workflows_app.forms import WorkflowForm, text_for
from workflows_app.models import Workflow
from workflows_app.security import access


class DemoFilter(InWords, admin.BooleanFieldListFilter):
    """The workflows that came with the demonstration, or the others."""

    heading = "demo"


@admin.register(Workflow)
class WorkflowAdmin(ModelAdmin):
    """Where people write workflows."""

    form = WorkflowForm
    list_display = ("slug", "short_name", "enabled", "version_number", "author", "last_change", "runs")
    list_filter = ("enabled", ("is_demo", DemoFilter))
    search_fields = ("slug", "name")
    actions = ("enable", "disable", "export")
    change_form_template = "admin/workflows_app/workflow/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        guard: Any = self.admin_site.admin_view
        versions, name = "<int:pk>/versions/", "workflows_app_workflow"
        return [
            path(versions, guard(self.versions), name=f"{name}_versions"),
            path(
                f"{versions}<int:number>/restore/", guard(require_POST(self.restore)), name=f"{name}_restore"
            ),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        match = request.resolver_match
        rows = super().get_queryset(request).select_related("current_version__author")
        name = match.url_name if match is not None else None
        if name == "workflows_app_workflow_delete" and request.method == "POST":
            # No run may be started between the question whether there are any and the end.
            return rows.select_for_update(of=("self",))
        return rows.defer("current_version__yaml") if name == "workflows_app_workflow_changelist" else rows

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self._is_editable(request, obj):
            return ("slug", "enabled", "text")
        return ("slug", "enabled", "yaml", "message", "based_on")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("slug",) if obj else ()  # runs, links and the API know a workflow by its slug

    def _is_editable(self, request: HttpRequest, obj: Any) -> bool:
        return self.has_change_permission(request, obj) if obj else self.has_add_permission(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if not self._is_editable(request, obj):
            kwargs["form"] = forms.ModelForm  # nothing is edited, so no editor is loaded
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.user = request.user
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A copy begins with the text of the workflow it is made from."""
        copied = request.GET.get("copy", "").replace("\0", "")
        source = Workflow.objects.select_related("current_version").filter(slug=copied).first()
        if source is None:
            return {"enabled": True}
        base = f"{slug_from(source.slug[:180]) or 'workflow'}-copy"
        taken = set(Workflow.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        names = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
        slug = next(name for name in names if name not in taken)
        return {
            "slug": slug,
            "yaml": text_for(source, slug),
            "enabled": source.enabled,
            "message": f"Copied from {source.slug}",
        }

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        context = {"can_run": may(request, access.START_RUN), "show_save_and_add_another": False}
        context |= extra_context or {}
        try:
            return super().changeform_view(request, object_id, form_url, context)
        except (services.Stale, IntegrityError):
            # Somebody saved between our check and our save. All was rolled back; the form now sees theirs.
            return super().changeform_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: Workflow, form: WorkflowForm, change: bool) -> None:
        version, outcome = form.save_version()
        saved = version.workflow
        if change:
            saved.refresh_from_db()
            services.set_enabled(saved, obj.enabled, author=who(request))
        obj.pk, obj.current_version = saved.pk, version
        obj.name, obj.enabled = saved.name, saved.enabled
        self.message_user(request, outcome, messages.SUCCESS)

    def delete_model(self, request: HttpRequest, obj: Workflow) -> None:
        services.audit(who(request), "workflow.delete", obj.slug)
        super().delete_model(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Runs are evidence: what has run is disabled, not deleted.
        return obj is not None and not obj.last_run_number and super().has_delete_permission(request, obj)

    def view_on_site(self, obj: Workflow) -> str:
        return obj.get_absolute_url()

    @admin.display(description="document")
    def text(self, workflow: Workflow) -> SafeString:
        text = workflow.current_version.yaml if workflow.current_version else ""
        return format_html('<pre class="fact-text" tabindex="0">{}</pre>', text)

    short_name = column("name", "name", lambda name: Truncator(name).chars(80))

    @admin.display(description="version", ordering="current_version__number")
    def version_number(self, workflow: Workflow) -> str:
        return f"v{workflow.current_version.number}" if workflow.current_version else "–"

    @admin.display(description="by")
    def author(self, workflow: Workflow) -> str:
        version = workflow.current_version
        return version.author.get_username() if version and version.author else "–"

    @admin.display(description="changed", ordering="current_version__created_at")
    def last_change(self, workflow: Workflow) -> Any:
        return workflow.current_version.created_at if workflow.current_version else None

    runs = column("last_run_number", "runs")

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> None:
        self._set_enabled(request, queryset, True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> None:
        self._set_enabled(request, queryset, False)

    def _set_enabled(self, request: HttpRequest, queryset: QuerySet[Workflow], enabled: bool) -> None:
        changed = list(queryset.filter(enabled=not enabled))
        for workflow in changed:
            services.set_enabled(workflow, enabled, author=who(request))
        word = "Enabled" if enabled else "Disabled"
        self.message_user(request, f"{word} {len(changed)} workflow{'' if len(changed) == 1 else 's'}.")

    @admin.action(description="Export as YAML files (zip)", permissions=["view"])
    def export(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponse:
        """Each workflow's current text in `<slug>.yaml`, byte for byte as it was saved."""
        files = io.BytesIO()
        rows = queryset.exclude(current_version=None).values_list("slug", "current_version__yaml")
        with zipfile.ZipFile(files, "w", zipfile.ZIP_DEFLATED) as archive:
            for slug, text in rows:
                archive.writestr(f"{slug}.yaml", text.encode())
        headers = {"Content-Disposition": 'attachment; filename="workflows.zip"'}
        return HttpResponse(files.getvalue(), content_type="application/zip", headers=headers)

    def versions(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The list of versions is on the workflow's page."""
        return redirect(f"{self._workflow(request, pk).get_absolute_url()}#versions")

    def restore(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        """Save an old text as the newest version; nothing in between is lost."""
        workflow = self._workflow(request, pk)
        if not self.has_change_permission(request, workflow):
            raise PermissionDenied
        old = get_object_or_404(workflow.versions, number=number)
        seen = request.POST.get("based_on", "")
        level = messages.ERROR
        try:
            saved = services.save_as(
                who(request),
                workflow.slug,
                old.yaml,
                message=f"Restored version {number}",
                based_on=int(seen) if seen.isdecimal() and len(seen) < 9 else None,
            )
        except InvalidDocument as invalid:
            text = f"Version {number} is no longer valid: {invalid.faults[0]}"
        except services.Stale as stale:
            text = stale.message
        else:
            level, text = messages.SUCCESS, f"Version {number} is back, as version {saved.number}."
        self.message_user(request, text, level)
        return redirect(f"{workflow.get_absolute_url()}#versions")

    def _workflow(self, request: HttpRequest, pk: int) -> Workflow:
        workflow = get_object_or_404(Workflow.objects.select_related("current_version"), pk=pk)
        if not self.has_view_or_change_permission(request, workflow):
            raise PermissionDenied
        return workflow
