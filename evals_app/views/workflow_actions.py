"""What people do about a workflow: run it, pin its baseline, acknowledge and resolve regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from evals_app import actions
from evals_app.models import Regression
from evals_app.views.workflows import find
from workflows_app import access
from workflows_app import services as workflow_services
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Environment, Run, Workflow, WorkflowVersion
from workflows_app.run_form import read_inputs, widgets_of

START = "workflows_app.start_run"


@require_http_methods(["GET", "HEAD", "POST"])
@access.requires(START)
def run(request: HttpRequest, slug: str) -> HttpResponse:
    """The form of a workflow's inputs; sent, it starts a run and goes to its page."""
    workflow = find(slug)
    version = _version(request, workflow)
    definition = version.readable_definition if version else None
    if version is None or definition is None:
        messages.warning(request, f"{slug} has no saved version that can run.")
        return redirect(workflow.get_absolute_url())
    faults: list[Fault] = []
    if request.method == "POST":
        try:
            started = _start(request, workflow, version)
        except InvalidDocument as invalid:
            faults = invalid.faults
        except workflow_services.Refused as refused:
            messages.error(request, refused.message)
            return redirect(workflow.get_absolute_url())
        else:
            return redirect(started.get_absolute_url())
    typed = request.POST.dict() if request.method == "POST" else None
    context = {
        "workflow": workflow,
        "version": version,
        "widgets": widgets_of(definition, typed, faults),
        "faults": faults,
        "is_simulation": bool(typed and typed.get("simulation")),
    }
    return render(request, "evals/workflow_run.html", context, status=400 if faults else 200)


def _version(request: HttpRequest, workflow: Workflow) -> WorkflowVersion | None:
    wanted = request.POST.get("version") or request.GET.get("version") or ""
    if wanted.isdecimal() and len(wanted) < 9:
        return get_object_or_404(workflow.versions, number=int(wanted))
    return workflow.current_version


def _start(request: HttpRequest, workflow: Workflow, version: WorkflowVersion) -> Run:
    inputs, faults = (
        ({}, []) if request.POST.get("defaults") else read_inputs(version.definition, request.POST.dict())
    )
    if faults:
        raise InvalidDocument(faults)
    is_simulation = bool(request.POST.get("simulation"))
    return workflow_services.start_run(
        workflow,
        inputs,
        version=version,
        environment=Environment.SIMULATION if is_simulation else Environment.PRODUCTION,
        user=request.user,  # type: ignore[arg-type]  # logged in, or the decorator had refused
    )


@require_POST
@access.requires("workflows_app.pin_baseline")
def pin_baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """Compare with one run or version from now on; with neither, with the last hundred again."""
    workflow = find(slug)
    chosen_run = version = None
    named_run, named_version = request.POST.get("run", "").strip(), request.POST.get("version", "").strip()
    if named_run:
        chosen_run = _run(workflow, named_run)
        if chosen_run is None:
            messages.error(request, f"{slug} has no run {named_run[:40]}. Give a number such as 42.")
            return _back(request, workflow, "versions")
    elif named_version:
        is_number = named_version.isdecimal() and len(named_version) < 10
        version = workflow.versions.filter(number=int(named_version)).first() if is_number else None
        if version is None:
            messages.error(request, f"{slug} has no version {named_version[:40]}.")
            return _back(request, workflow, "versions")
    if problem := actions.pin_problem(workflow, chosen_run, version):
        messages.error(request, problem)
        return _back(request, workflow, "versions")
    try:
        actions.pin_baseline(
            workflow,
            run=chosen_run,
            version=version,
            user=request.user,  # type: ignore[arg-type]
        )
    except workflow_services.Refused as refused:
        messages.error(request, refused.message)
        return _back(request, workflow, "versions")
    what = f"run #{chosen_run.number}" if chosen_run else f"version {version.number}" if version else ""
    messages.success(
        request,
        f"New runs are compared with {what}." if what else "New runs are compared with the last 100 again.",
    )
    return _back(request, workflow, "versions")


def _run(workflow: Workflow, named: str) -> Run | None:
    number = named.lstrip("#")
    if number.isdecimal() and len(number) < 10:
        return workflow.runs.filter(number=int(number)).first()
    try:
        return workflow.runs.filter(pk=UUID(named)).first()
    except ValueError:
        return None


@require_POST
@access.requires("evals_app.handle_regression")
def acknowledge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say that somebody looks after it."""
    return _handle(
        request, pk, actions.acknowledge_regression, "Acknowledged: it stays in sight until it is over."
    )


@require_POST
@access.requires("evals_app.handle_regression")
def resolve(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say that it is over."""
    return _handle(request, pk, actions.resolve_regression, "Resolved: it is compared afresh from now on.")


def _handle(
    request: HttpRequest, pk: UUID, act: Callable[[Regression, Any], Regression], told: str
) -> HttpResponse:
    regression = get_object_or_404(Regression.objects.select_related("workflow"), pk=pk)
    try:
        act(regression, request.user)
    except workflow_services.Refused as refused:
        messages.warning(request, refused.message)
    else:
        messages.success(request, told)
    return _back(request, regression.workflow, "regressions")


def _back(request: HttpRequest, workflow: Workflow, section: str) -> HttpResponseRedirect:
    """To where the form says, if that is a page of ours, else to the section of the workflow's page; as it was."""
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    path, place = (wanted, "") if is_ours else (workflow.get_absolute_url(), f"#{section}")
    page, _, query = request.headers.get("Referer", "").partition("#")[0].partition("?")
    left = page.partition("://")[2].partition("/")[2]
    kept = f"?{query}" if query and f"/{left}" == path else ""
    return HttpResponseRedirect(f"{path}{kept}{place}")
