"""Start from your own file, or change one: write YAML, see its errors and its graph, save, run."""

from __future__ import annotations

from django.contrib import messages
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from evals_app.pages.workflow.views import find
from workflows_app import services
from workflows_app.forms import WorkflowForm, check_text
from workflows_app.security import access


class SiteForm(WorkflowForm):
    """The form without what only the admin changes."""

    class Meta(WorkflowForm.Meta):
        fields = ("slug",)


@access.requires("workflows_app.add_workflow", "GET", "HEAD", "POST")
def start(request: HttpRequest) -> HttpResponse:
    """A new workflow from a text."""
    return _editor(request)


@access.requires("workflows_app.change_workflow", "GET", "HEAD", "POST")
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """A new version of a workflow."""
    return _editor(request, slug)


@access.requires(access.SEE_WORKFLOWS, "POST")
def check(request: HttpRequest) -> HttpResponse:
    """What is wrong with a text that is being typed, and its graph; nothing is saved."""
    text = request.POST.get("yaml", "").replace("\r\n", "\n")
    slug = request.POST.get("slug", "").replace("\0", "")
    return render(request, "site/_yaml_check.html", {"checked": check_text(request.user, text, slug)})


def _editor(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    form = _form(request, slug)
    if form.is_valid():
        try:
            version, outcome = form.save_version()
        except (services.Stale, IntegrityError):
            form = _form(request, slug)  # which finds what somebody else has just saved
        else:
            messages.success(request, outcome)
            if request.POST.get("then") == "run":
                return redirect("workflow-run", version.workflow.slug)
            return redirect(version.workflow.get_absolute_url())
    context = {"workflow": form.instance if slug else None, "section": "workflows", "form": form}
    return render(request, "evals/workflow_edit.html", context, status=_status(form))


def _form(request: HttpRequest, slug: str | None) -> SiteForm:
    form = SiteForm(request.POST if request.method == "POST" else None, instance=find(slug) if slug else None)
    form.user = request.user
    return form


def _status(form: SiteForm) -> int:
    if not form.errors:
        return 200
    if form.stale_version:
        return 409
    return 403 if form.checked.is_denied else 400
