"""The pages around one workflow's text: check while typing, versions, restore, export."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from workflows_app import access, services
from workflows_app.admin.facts import ModelAdmin, may, who
from workflows_app.diff import side_by_side
from workflows_app.documents import check_document, check_document_for
from workflows_app.engine.definition import InvalidDocument
from workflows_app.graph import definition_graph, graph_svg, layout
from workflows_app.models import Workflow, WorkflowVersion

START_RUN = "workflows_app.start_run"
MOST_VERSIONS = 50


class WorkflowPages(ModelAdmin):
    """Views of the workflow admin beside Django's own."""

    def get_urls(self) -> list[URLPattern]:
        def page(route: str, view: Any, name: str) -> Any:
            guarded: Any = self.admin_site.admin_view(view)
            return path(route, guarded, name=f"workflows_app_workflow_{name}")

        return [
            page("check/", require_POST(self.check_text), "check"),
            page("<int:pk>/versions/", self.versions, "versions"),
            page("<int:pk>/versions/<int:number>/", self.version, "version"),
            page("<int:pk>/versions/<int:number>/restore/", require_POST(self.restore), "restore"),
            *super().get_urls(),
        ]

    def check_text(self, request: HttpRequest) -> JsonResponse:
        """Every fault of a text, and its graph where there is none."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        text, slug = request.POST.get("yaml", "").replace("\r\n", "\n"), request.POST.get("slug", "")
        definition, faults = check_document_for(slug, text) if slug else check_document(text)
        told = [{**fault.to_dict(), "text": str(fault)} for fault in faults]
        if definition is not None and definition.has_code and not may(request, access.SAVE_CODE):
            told.append(
                {"path": "blocks", "line": None, "message": "", "text": _no_code(request, definition)}
            )
        graph = graph_svg(layout(*definition_graph(definition))) if definition is not None else ""
        return JsonResponse({"faults": told, "graph": graph})

    def versions(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Every version, newest first."""
        workflow = self._workflow(request, pk)
        rows = workflow.versions.select_related("author").defer("yaml")
        shown = list(rows[: MOST_VERSIONS + 1])
        context = {
            "title": f"Versions of {workflow.slug}",
            "crumb": "Versions",
            "versions": shown[:MOST_VERSIONS],
            "is_cut": len(shown) > MOST_VERSIONS,
        }
        return self._page(request, workflow, "versions", context)

    def version(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        """One version beside another: the one before it, or `?against=`."""
        workflow = self._workflow(request, pk)
        chosen = _version(workflow, number)
        asked = request.GET.get("against", "")
        other = (
            workflow.versions.filter(number=int(asked)).first()
            if asked.isdecimal() and len(asked) < 9
            else None
        )
        if other is None:
            other = workflow.versions.filter(number__lt=number).first()
        context = {
            "title": f"{workflow.slug}: version {number}",
            "crumb": f"Version {number}",
            "version": chosen,
            "other": other,
            "diff": side_by_side(other.yaml, chosen.yaml) if other else None,
            "old_title": f"Version {other.number}" if other else "",
            "new_title": f"Version {number}",
        }
        return self._page(request, workflow, "version", context)

    def restore(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        """Save an old text as the newest version; nothing in between is lost."""
        workflow = self._workflow(request, pk)
        if not self.has_change_permission(request, workflow):
            raise PermissionDenied
        old = _version(workflow, number)
        access.check_save(request.user, check_document(old.yaml)[0])
        seen = request.POST.get("based_on", "")
        try:
            saved = services.save_version(
                workflow.slug,
                old.yaml,
                author=who(request),
                message=f"Restored version {number}",
                based_on=int(seen) if seen.isdecimal() and len(seen) < 9 else None,
            )
        except InvalidDocument as invalid:
            text = f"Version {number} is no longer valid: {invalid.faults[0]}"
            self.message_user(request, text, messages.ERROR)
        except services.Stale as stale:
            self.message_user(request, str(stale), messages.ERROR)
        else:
            self.message_user(
                request, f"Version {number} is back, as version {saved.number}.", messages.SUCCESS
            )
        return HttpResponseRedirect(reverse("admin:workflows_app_workflow_versions", args=[pk]))

    def _workflow(self, request: HttpRequest, pk: int) -> Workflow:
        workflow = get_object_or_404(Workflow.objects.select_related("current_version"), pk=pk)
        if not self.has_view_or_change_permission(request, workflow):
            raise PermissionDenied
        return workflow

    def _page(
        self, request: HttpRequest, workflow: Workflow, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        told = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": workflow,
            "can_change": self.has_change_permission(request, workflow),
            "can_run": may(request, START_RUN),
            **context,
        }
        return TemplateResponse(request, f"admin/workflows_app/workflow/{name}.html", told)


def _version(workflow: Workflow, number: int) -> WorkflowVersion:
    return get_object_or_404(workflow.versions.select_related("author", "workflow"), number=number)


def _no_code(request: HttpRequest, definition: Any) -> str:
    try:
        access.check_save(request.user, definition)
    except PermissionDenied as denied:
        return str(denied)
    return ""


def as_zip(workflows: QuerySet[Workflow]) -> bytes:
    """Each workflow's current text in `<slug>.yaml`, byte for byte as it was saved."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for slug, text in workflows.exclude(current_version=None).values_list(
            "slug", "current_version__yaml"
        ):
            archive.writestr(f"{slug}.yaml", text.encode())
    return held.getvalue()
