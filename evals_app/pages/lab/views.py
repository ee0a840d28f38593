"""The assertion lab: try assertions on a text as they are typed, and on what a block said before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string

from evals_app.monitoring.backtest import Backtest, backtest, backtest_in_steps
from evals_app.pages.lab.trial import LIMITS, Trial, blocks_of, catalogue, report
from evals_app.pages.responses import stream
from evals_app.pages.workflow.views import find
from workflows_app.display.querystring import asked_text
from workflows_app.engine.definition import Fault
from workflows_app.models import RunNode, Workflow
from workflows_app.security import access

WORKFLOWS_TO_PICK = 100  # those changed last, and the chosen one


@access.requires(access.SEE, "GET", "HEAD", "POST")
def lab(request: HttpRequest) -> HttpResponse:
    """The whole page, or with `part` what changes while somebody types; every button also works as a plain form post."""
    action = request.POST.get("action", "try")
    trial = Trial.typed(request.POST) if request.method == "POST" else _opened(request)
    workflow = _workflow(trial.workflow)
    context: dict[str, Any] = {"trial": trial, "limits": LIMITS, "is_loaded": action == "load"}
    if action == "load" and workflow and trial.block:
        trial.start_from(workflow, trial.block)
    elif action == "load":
        context["backtest_faults"] = [Fault("block", None, "Choose a workflow and a block.")]
    elif action == "backtest":
        context |= _backtested(trial)
    context["result"] = trial.result if trial.configs else None
    if "part" in request.GET:
        # Half-typed YAML takes away nothing: the results of before stay, as such.
        context["is_stale"] = not trial.configs and bool(trial.faults)
        context["has_results_before"] = request.POST.get("shown", "0") != "0"
        return render(request, "evals/_lab_parts.html", context)
    context |= {"families": catalogue(), **_workflows(trial.workflow), **_blocks(workflow, trial.block)}
    return render(request, "evals/lab.html", context)


@access.requires(access.SEE)
def lab_blocks(request: HttpRequest) -> HttpResponse:
    """The blocks of one workflow, for the select box."""
    workflow = find(asked_text(request, "workflow")) if request.GET.get("workflow") else None
    return render(request, "evals/_lab_blocks.html", _blocks(workflow))


@access.requires(access.SEE, "POST")
def lab_backtest(request: HttpRequest) -> StreamingHttpResponse:
    """A backtest as lines of HTML in JSON: how far it is, again and again, and at last the report, or why there is none."""
    return stream(request, _lines(Trial.typed(request.POST)), "application/x-ndjson")


def _lines(trial: Trial) -> Iterator[str]:
    workflow, faults = _asked(trial)
    if workflow is None or faults:
        yield _line("evals/_lab_report.html", {"backtest_faults": faults})
        return
    expected = min(trial.limit, workflow.last_run_number)
    found = Backtest([])
    yield _line("evals/_lab_progress.html", {"done": 0, "of": expected})
    for found in backtest_in_steps(workflow, trial.block, trial.configs, trial.limit):
        yield _line("evals/_lab_progress.html", {"done": found.count, "of": max(expected, found.count)})
    made = report(found, workflow, trial.block, trial.configs)
    yield _line("evals/_lab_report.html", {"report": made})


def _line(template: str, context: dict[str, Any]) -> str:
    return json.dumps({"html": render_to_string(template, context)}) + "\n"


def _opened(request: HttpRequest) -> Trial:
    """The lab as it opens: an example, or a block or a node somebody came from."""
    trial = Trial()
    node, slug = request.GET.get("node", ""), asked_text(request, "workflow")
    if node.isdecimal() and len(node) < 19:
        rows = RunNode.objects.select_related("run__workflow", "run__version")
        found = get_object_or_404(rows, pk=node)
        trial.start_from(found.run.workflow, found.node_id, found)
    elif slug:
        block = asked_text(request, "block")
        workflow = find(slug)
        if block:
            trial.start_from(workflow, block)
        else:
            trial.workflow = slug
    return trial


def _backtested(trial: Trial) -> dict[str, Any]:
    """The report of a backtest in one piece, or why there is none."""
    workflow, faults = _asked(trial)
    if workflow is None or faults:
        return {"backtest_faults": faults}
    found = backtest(workflow, trial.block, trial.configs, trial.limit)
    return {"report": report(found, workflow, trial.block, trial.configs)}


def _asked(trial: Trial) -> tuple[Workflow | None, list[Fault]]:
    """The workflow to look back at, or what is missing."""
    workflow = _workflow(trial.workflow)
    faults = []
    if workflow is None:
        faults.append(Fault("workflow", None, "Choose a workflow."))
    if not trial.block:
        faults.append(Fault("block", None, "Choose a block."))
    if not trial.configs and not trial.faults:
        faults.append(Fault("assertions", None, "Write at least one assertion."))
    return workflow, faults + trial.faults


def _workflow(slug: str) -> Workflow | None:
    return Workflow.objects.select_related("current_version").filter(slug=slug).first() if slug else None


def _workflows(chosen: str) -> dict[str, Any]:
    rows = Workflow.objects.order_by("-updated_at").values_list("slug", flat=True)
    found = list(rows[: WORKFLOWS_TO_PICK + 1])
    return {
        "workflows": sorted({*found[:WORKFLOWS_TO_PICK], *([chosen] if chosen else [])}),
        "workflows_to_pick": WORKFLOWS_TO_PICK,
        "is_cut": len(found) > WORKFLOWS_TO_PICK,
    }


def _blocks(workflow: Workflow | None, chosen: str = "") -> dict[str, Any]:
    """Blocks of the current version, each with how many assertions it has; the only one is chosen."""
    blocks = blocks_of(workflow.current_version if workflow else None)
    return {
        "blocks": [(name, len(block.assertions or ())) for name, block in blocks.items()],
        "chosen": next(iter(blocks)) if len(blocks) == 1 else chosen,
    }
