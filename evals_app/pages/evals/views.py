"""Eval suites: their cases over time, one evaluation, two compared, and a case made from what ran."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import capfirst

from evals_app.cases.compare import compare as compare_cases
from evals_app.models import EvalSuiteRun
from evals_app.pages.evals.tables import change_row, comparison_sentence, strip_of, suite_run_page
from evals_app.pages.workflow.views import find
from evals_app.suites import history as suite_history
from evals_app.suites import running as suites
from evals_app.suites.case_maker import propose_case, save_case
from workflows_app.display.diff import side_by_side
from workflows_app.display.querystring import asked_ids, asked_number, page_of
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode, Workflow
from workflows_app.security import access
from workflows_app.services import Refused

CHANGE = "workflows_app.change_workflow"


@access.requires(access.SEE)
def suite_list(request: HttpRequest) -> HttpResponse:
    """Every workflow with cases, and how its suite did over time."""
    page = page_of(request, "suites", suite_history.with_suites())
    page.object_list = [
        {"suite": one, "strip": strip_of(one.marks, one.workflow.slug)}
        for one in suite_history.overview(list(page))
    ]
    context = {
        "rows": page,
        "is_demo": any(row["suite"].workflow.is_demo for row in page),
        "has_runs": bool(page) or Run.objects.exists(),
        "has_workflows": bool(page) or Workflow.objects.exists(),
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
        "may_start": access.may(request.user, access.START_RUN),
    }
    return render(request, "evals/suites.html", context)


@access.requires(access.SEE)
def suite(request: HttpRequest, slug: str) -> HttpResponse:
    """One workflow's suite: each case over time, and its evaluations."""
    workflow = find(slug)
    cases = page_of(request, "cases", suite_history.case_histories(workflow))
    cases.object_list = [
        {"case": one, "strip": strip_of(one.marks, one.case_id)} for one in cases.object_list
    ]
    rows = EvalSuiteRun.objects.for_list().filter(workflow=workflow)
    section = suite_history.suite_of(workflow)
    context = {
        "workflow": workflow,
        "cases": cases,
        "current_count": len(section.cases) if section else 0,
        "threshold": section.threshold if section else None,
        "runs": page_of(request, "evaluations", rows),
        "latest": rows.first(),
        "may_start": access.may(request.user, access.START_RUN),
    }
    return render(request, "evals/suite.html", context)


@access.requires(access.START_RUN, "POST")
def start(request: HttpRequest, slug: str) -> HttpResponse:
    """Evaluate a workflow's suite in the background, and show it."""
    workflow = find(slug)
    if not suite_history.cases_of(workflow):
        messages.warning(request, f"{slug} has no eval cases to run.")
        return redirect("eval-suite", slug=slug)
    try:
        return redirect(suites.start_suite(workflow, request.user))  # type: ignore[arg-type]  # logged in
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("eval-suite", slug=slug)


@access.requires(access.SEE)
def suite_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One evaluation, failing cases first; its script asks for the part while it goes on."""
    one = _suite_run(run_id)
    asked = request.GET.get("case", "")
    context = {
        "suite_run": one,
        "workflow": one.workflow,
        "page": suite_run_page(one, asked, asked_number(request, "cases") or 1),
        "previous": suite_history.previous_of(one),
        "asked": asked,
        "reason": f"{capfirst(one.reason.removesuffix('.'))}." if one.reason else "",
        "tone": {"passed": "good", "error": "warn"}.get(one.status, "bad"),
        "may_start": access.may(request.user, access.START_RUN),
    }
    template = "evals/_suite_run.html" if request.GET.get("part") else "evals/suite_run.html"
    return render(request, template, context)


@access.requires(access.SEE)
def compare_chosen(request: HttpRequest, slug: str) -> HttpResponse:
    """The comparison of the two evaluations ticked in a list, the older one first."""
    chosen = asked_ids(request, "run")
    if len(chosen) != 2:
        messages.warning(request, "Tick two evaluations to compare them.")
        return redirect("eval-suite", slug=slug)
    older, newer = sorted(map(_suite_run, chosen), key=lambda one: one.started_at)
    return redirect("eval-compare", run_id=newer.pk, other_id=older.pk)


@access.requires(access.SEE)
def compare(request: HttpRequest, run_id: UUID, other_id: UUID) -> HttpResponse:
    """Two evaluations case by case, flips first."""
    after, before = _suite_run(run_id), _suite_run(other_id)
    if after.workflow_id != before.workflow_id:
        raise Http404("These are evaluations of two workflows.")
    changes = compare_cases(suite_history.verdicts_of(before), suite_history.verdicts_of(after))
    sentence, tone = comparison_sentence(changes)
    rows = page_of(request, "cases", changes)
    rows.object_list = [change_row(change, before, after) for change in rows.object_list]
    context = {
        "workflow": after.workflow,
        "before": before,
        "after": after,
        "rows": rows,
        "sentence": sentence,
        "tone": tone,
    }
    return render(request, "evals/suite_compare.html", context)


@access.requires(CHANGE, "GET", "HEAD", "POST")
def make_case(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """A node as an eval case: the change to the YAML to look at, and then to save."""
    rows = RunNode.objects.select_related("run__workflow__current_version", "run__version")
    node = get_object_or_404(rows, pk=pk, run_id=run_id)
    form = request.POST if request.method == "POST" else request.GET
    context: dict[str, Any] = {"node": node, "run": node.run, "freeze": bool(form.get("freeze"))}
    try:
        proposal = propose_case(
            node, case_id=form.get("id", "").strip() or None, freeze_output=context["freeze"]
        )
        if request.method == "POST" and form.get("based_on") == str(proposal.based_on):  # what was looked at
            access.check_save(request.user, proposal.definition)
            version = save_case(proposal, request.user)  # type: ignore[arg-type]  # logged in
            messages.success(request, f"Saved version {version.number} with the case {proposal.case_id}.")
            return redirect("eval-suite", slug=proposal.slug)
    except Refused as refusal:
        context["refusal"] = refusal.message
    except InvalidDocument as invalid:
        context |= {"faults": invalid.faults, "case_id": form.get("id", "")}
    else:
        context |= {
            "proposal": proposal,
            "case_id": proposal.case_id,
            "next_version": proposal.based_on + 1,
            "diff": side_by_side(proposal.yaml_text_old, proposal.yaml_text_new).page(
                asked_number(request, "lines")
            ),
            "was_stale": request.method == "POST",
        }
    return render(request, "evals/make_case.html", context)


def _suite_run(run_id: UUID) -> EvalSuiteRun:
    return get_object_or_404(EvalSuiteRun.objects.for_list(), pk=run_id)
