"""The forms of a workflow's page: run it, pin its baseline, acknowledge and resolve regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme

from evals_app.models import Regression
from evals_app.pages.workflow.views import find
from evals_app.services import actions
from workflows_app import services as workflow_services
from workflows_app.display.run_form import read_inputs, widgets_of
from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Environment, Run, Workflow, WorkflowVersion
from workflows_app.security import access
from workflows_app.services import Refused


@access.requires(access.START_RUN, "GET", "HEAD", "POST")
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
        except Refused as refused:
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
    number = _number(wanted)
    return get_object_or_404(workflow.versions, number=number) if number else workflow.current_version


def _start(request: HttpRequest, workflow: Workflow, version: WorkflowVersion) -> Run:
    inputs: dict[str, Any] = {}
    if not request.POST.get("defaults"):
        inputs, faults = read_inputs(version.definition, request.POST.dict())
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


@access.requires("workflows_app.pin_baseline", "POST")
def pin_baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """Compare with one run or version from now on; with neither, with the last hundred again."""
    workflow = find(slug)
    try:
        run, version = _run_to_pin(request, workflow), _version_to_pin(request, workflow)
        if problem := actions.pin_problem(workflow, run, version):
            raise Refused("invalid", problem)
        actions.pin_baseline(workflow, run=run, version=version, user=request.user)  # type: ignore[arg-type]
    except Refused as refused:
        messages.error(request, refused.message)
    else:
        pinned = (
            f"run #{run.number}" if run else f"version {version.number}" if version else "the last 100 again"
        )
        messages.success(request, f"New runs are compared with {pinned}.")
    return _back(request, workflow, "versions")


def _run_to_pin(request: HttpRequest, workflow: Workflow) -> Run | None:
    """The run that was named by its number or id."""
    name = request.POST.get("run", "").strip()
    if not name:
        return None
    number = _number(name.lstrip("#"))
    try:
        wanted = Q(number=number) if number else Q(pk=UUID(name))
    except ValueError:
        wanted = Q(pk=None)
    run = workflow.runs.filter(wanted).first()
    if run is None:
        raise Refused("invalid", f"{workflow.slug} has no run {name[:40]}. Enter a number such as 42.")
    return run


def _version_to_pin(request: HttpRequest, workflow: Workflow) -> WorkflowVersion | None:
    name = request.POST.get("version", "").strip()
    if not name or request.POST.get("run", "").strip():
        return None
    number = _number(name)
    version = workflow.versions.filter(number=number).first() if number else None
    if version is None:
        raise Refused("invalid", f"{workflow.slug} has no version {name[:40]}.")
    return version


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


@access.requires("evals_app.handle_regression", "POST")
def acknowledge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say that somebody works on a regression."""
    message = "Acknowledged: it stays in sight until it is over."
    return _handle(request, pk, actions.acknowledge_regression, message)


@access.requires("evals_app.handle_regression", "POST")
def resolve(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say that a regression is over."""
    return _handle(request, pk, actions.resolve_regression, "Resolved: it is compared afresh from now on.")


def _handle(
    request: HttpRequest, pk: UUID, act: Callable[[Regression, Any], Regression], message: str
) -> HttpResponse:
    regression = get_object_or_404(Regression.objects.select_related("workflow"), pk=pk)
    try:
        act(regression, request.user)
    except Refused as refused:
        messages.warning(request, refused.message)
    else:
        messages.success(request, message)
    return _back(request, regression.workflow, "regressions")


def _back(request: HttpRequest, workflow: Workflow, section: str) -> HttpResponseRedirect:
    """To the page that the form names, if it is one of ours, else to a section of the workflow's page; with its query."""
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    path, place = (wanted, "") if is_ours else (workflow.get_absolute_url(), f"#{section}")
    page, _, query = request.headers.get("Referer", "").partition("#")[0].partition("?")
    left = page.partition("://")[2].partition("/")[2]
    kept = f"?{query}" if query and f"/{left}" == path else ""
    return HttpResponseRedirect(f"{path}{kept}{place}")
