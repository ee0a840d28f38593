"""Workflows: the list, and the editor of one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from workflows_app import services
from workflows_app.admin.document_form import WorkflowForm, copied_text
from workflows_app.admin.facts import may, who
from workflows_app.admin.filters import InWords
from workflows_app.admin.workflow_pages import START_RUN, WorkflowPages, as_zip
from workflows_app.models import Workflow


class DemoFilter(InWords, admin.BooleanFieldListFilter):
    """The workflows that came with the demonstration, or the others."""

    heading = "demo"


@admin.register(Workflow)
class WorkflowAdmin(WorkflowPages):
    """Where people write workflows."""

    form = WorkflowForm
    list_display = ("slug", "short_name", "enabled", "version_number", "author", "last_change", "runs")
    list_filter = ("enabled", ("is_demo", DemoFilter))
    search_fields = ("slug", "name")
    actions = ("enable", "disable", "export")
    change_form_template = "admin/workflows_app/workflow/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        match = request.resolver_match
        rows = super().get_queryset(request).select_related("current_version__author")
        is_list = match is not None and match.url_name == "workflows_app_workflow_changelist"
        return rows.defer("current_version__yaml") if is_list else rows

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self._is_editable(request, obj):
            return ("slug", "enabled", "text")
        return ("slug", "enabled", "yaml", "message", "based_on")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self._is_editable(request, obj):
            return ("slug", "enabled", "text")
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
        source = (
            Workflow.objects.select_related("current_version")
            .filter(slug=request.GET.get("copy", "").replace("\0", ""))
            .first()
        )
        if source is None:
            return {"enabled": True}
        slug = _free_slug(source.slug)
        return {
            "slug": slug,
            "yaml": copied_text(source, slug),
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
        context = {
            **(extra_context or {}),
            "can_run": may(request, START_RUN),
            "show_save_and_add_another": False,
        }
        try:
            return super().changeform_view(request, object_id, form_url, context)
        except (services.Stale, IntegrityError):
            # Somebody saved between our check and our save. All was rolled back; the form now sees theirs.
            return super().changeform_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: Workflow, form: WorkflowForm, change: bool) -> None:
        data = form.cleaned_data
        version = services.save_version(
            obj.slug,
            data["yaml"],
            author=who(request),
            message=data["message"],
            enabled=None if change else obj.enabled,
            based_on=data["based_on"] if change else 0,
        )
        wanted, saved = obj.enabled, version.workflow
        if change:
            saved.refresh_from_db()
            services.set_enabled(saved, wanted, author=who(request))
        obj.pk, obj.current_version = saved.pk, version
        obj.name, obj.enabled = saved.name, wanted
        if change and version.number == form.initial.get("based_on"):
            self.message_user(request, "The text is as it was, so there is no new version.", messages.INFO)
        else:
            self.message_user(request, f"Saved as version {version.number}.", messages.SUCCESS)

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

    @admin.display(description="name", ordering="name")
    def short_name(self, workflow: Workflow) -> str:
        return Truncator(workflow.name).chars(80)

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

    @admin.display(description="runs", ordering="last_run_number")
    def runs(self, workflow: Workflow) -> int:
        return workflow.last_run_number

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
        headers = {"Content-Disposition": 'attachment; filename="workflows.zip"'}
        return HttpResponse(as_zip(queryset), content_type="application/zip", headers=headers)


def _free_slug(slug: str) -> str:
    base = f"{slug[:180]}-copy"
    taken = set(Workflow.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next(
        name for name in (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3))) if name not in taken
    )
