"""Eval suites: their cases over time, one evaluation, two compared, and a case made from what ran."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evals_app import suite_history, suites
from evals_app.case_maker import CaseProposal, propose_case, save_case
from evals_app.models import EvalSuiteRun
from evals_app.suite_pages import CaseRow, ChangeRow, SuiteRow, comparison_sentence, suite_run_page
from workflows_app import access
from workflows_app.addresses import asked_number, page_of
from workflows_app.diff import side_by_side
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode, Workflow
from workflows_app.services import Refused, Stale

START = "workflows_app.start_run"
CHANGE = "workflows_app.change_workflow"
SUITES_A_PAGE = 40
CASES_A_PAGE = 40
EVALUATIONS_A_PAGE = 20
CHANGES_A_PAGE = 60


@require_safe
@access.requires(access.SEE)
def suite_list(request: HttpRequest) -> HttpResponse:
    """Every workflow with cases, and how its suite did over time."""
    page = page_of(request, "suites", suite_history.with_suites(), SUITES_A_PAGE)
    page.object_list = [SuiteRow.of(one) for one in suite_history.overview(list(page))]
    context = {
        "rows": page,
        "is_demo": any(row.suite.workflow.is_demo for row in page),
        "has_runs": bool(page) or Run.objects.exists(),
        "has_workflows": bool(page) or Workflow.objects.exists(),
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
        "may_start": access.may(request.user, START),
    }
    return render(request, "evals/suites.html", context)


@require_safe
@access.requires(access.SEE)
def suite(request: HttpRequest, slug: str) -> HttpResponse:
    """One workflow's suite: each case over time, and its evaluations."""
    workflow = _workflow(slug)
    cases = page_of(request, "cases", suite_history.case_histories(workflow), CASES_A_PAGE)
    cases.object_list = [CaseRow.of(one) for one in cases.object_list]
    rows = EvalSuiteRun.objects.for_list().filter(workflow=workflow)
    section = suite_history.suite_of(workflow)
    context = {
        "workflow": workflow,
        "cases": cases,
        "current_count": len(section.cases) if section else 0,
        "threshold": section.threshold if section else None,
        "runs": page_of(request, "evaluations", rows, EVALUATIONS_A_PAGE),
        "latest": rows.first(),
        "may_start": access.may(request.user, START),
    }
    return render(request, "evals/suite.html", context)


@require_POST
@access.requires(START)
def start(request: HttpRequest, slug: str) -> HttpResponse:
    """Evaluate a workflow's suite in the background, and show it."""
    workflow = _workflow(slug)
    if not suite_history.cases_of(workflow):
        messages.warning(request, f"{slug} has no eval cases to run.")
        return redirect("eval-suite", slug=slug)
    try:
        return redirect(suites.start_suite(workflow, request.user))  # type: ignore[arg-type]  # logged in
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("eval-suite", slug=slug)


@require_safe
@access.requires(access.SEE)
def suite_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One evaluation, failing cases first; its script asks for the part while it goes on."""
    one = _suite_run(run_id)
    asked = request.GET.get("case", "")
    context = {
        "suite_run": one,
        "page": suite_run_page(one, asked, asked_number(request, "cases") or 1),
        "previous": suite_history.previous_of(one),
        "asked": asked,
        "may_start": access.may(request.user, START),
    }
    template = "evals/_suite_run.html" if request.GET.get("part") else "evals/suite_run.html"
    return render(request, template, context)


@require_safe
@access.requires(access.SEE)
def compare_chosen(request: HttpRequest, slug: str) -> HttpResponse:
    """The comparison of the two evaluations ticked in a list, the older one first."""
    try:
        chosen = [UUID(value) for value in request.GET.getlist("run")]
    except ValueError:
        raise Http404 from None
    if len(chosen) != 2:
        messages.warning(request, "Tick two evaluations to compare them.")
        return redirect("eval-suite", slug=slug)
    older, newer = sorted(map(_suite_run, chosen), key=lambda one: one.started_at)
    return redirect("eval-compare", run_id=newer.pk, other_id=older.pk)


@require_safe
@access.requires(access.SEE)
def compare(request: HttpRequest, run_id: UUID, other_id: UUID) -> HttpResponse:
    """Two evaluations case by case, flips first."""
    after, before = _suite_run(run_id), _suite_run(other_id)
    if after.workflow_id != before.workflow_id:
        raise Http404("These are evaluations of two workflows.")
    changes = suite_history.compare_suites(before, after)
    sentence, tone = comparison_sentence(changes)
    rows = page_of(request, "cases", changes, CHANGES_A_PAGE)
    rows.object_list = [ChangeRow.of(change) for change in rows.object_list]
    context = {"before": before, "after": after, "rows": rows, "sentence": sentence, "tone": tone}
    return render(request, "evals/suite_compare.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@access.requires(CHANGE)
def make_case(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """A node as an eval case: the change to the YAML to look at, and then to save."""
    rows = RunNode.objects.select_related("run__workflow__current_version", "run__version")
    node = get_object_or_404(rows, pk=pk, run_id=run_id)
    given = request.POST if request.method == "POST" else request.GET
    context: dict[str, Any] = {"node": node, "run": node.run, "freeze": bool(given.get("freeze"))}
    try:
        proposal = propose_case(
            node, case_id=given.get("id", "").strip() or None, freeze_output=context["freeze"]
        )
        if request.method == "POST" and _is_current(proposal, given.get("based_on", "")):
            access.check_save(request.user, node.run.workflow.current_version.definition)  # type: ignore[union-attr]  # it proposed
            version = save_case(proposal, request.user)  # type: ignore[arg-type]  # logged in
            messages.success(request, f"Saved version {version.number} with the case {proposal.case_id}.")
            return redirect("eval-suite", slug=proposal.slug)
    except Stale as stale:
        context["refusal"] = stale.message
    except Refused as refusal:
        context["refusal"] = refusal.message
    except InvalidDocument as invalid:
        context |= {"faults": invalid.faults, "case_id": given.get("id", "")}
    else:
        context |= {
            "proposal": proposal,
            "case_id": proposal.case_id,
            "diff": side_by_side(proposal.yaml_text_old, proposal.yaml_text_new).part(
                asked_number(request, "parts")
            ),
            "was_stale": request.method == "POST",
        }
    return render(request, "evals/make_case.html", context)


def _is_current(proposal: CaseProposal, based_on: str) -> bool:
    """Whether what was looked at is what would be saved."""
    return based_on == str(proposal.based_on)


def _workflow(slug: str) -> Workflow:
    return get_object_or_404(Workflow.objects.select_related("current_version"), slug=slug)


def _suite_run(run_id: UUID) -> EvalSuiteRun:
    return get_object_or_404(EvalSuiteRun.objects.for_list(), pk=run_id)
