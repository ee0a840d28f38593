"""The assertion lab: try assertions on a text as they are typed, and on what a block said before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evals_app.backtest import Backtest, backtest, backtest_in_steps
from evals_app.blocks import to_pick
from evals_app.lab import LIMITS, BacktestReport, Trial, blocks_of, catalogue, report
from workflows_app import access
from workflows_app.engine.definition import Fault
from workflows_app.models import RunNode, Workflow

WORKFLOWS_TO_PICK = 100  # those changed last, and the chosen one
BLOCKS_TO_PICK = 100


@require_http_methods(["GET", "HEAD", "POST"])
@access.requires(access.SEE)
def lab(request: HttpRequest) -> HttpResponse:
    """The whole page; every button also works as a plain form post."""
    action = request.POST.get("action", "try")
    trial = Trial.typed(request.POST) if request.method == "POST" else _opened(request)
    told: dict[str, Any] = {}
    if action == "load" and trial.block and (workflow := _workflow(trial.workflow)) is not None:
        trial.start_from(workflow, trial.block)
    elif action == "backtest":
        told = _backtested(trial)
    workflow = _workflow(trial.workflow)
    context = {
        "trial": trial,
        "result": trial.result if trial.configs else None,
        "families": catalogue(),
        "words": ("passed", "failed", "error"),
        **_workflows(trial.workflow),
        "blocks": _blocks(workflow, trial.block) if workflow else [],
        "limits": LIMITS,
        **told,
    }
    return render(request, "evals/lab.html", context)


@require_safe
@access.requires(access.SEE)
def lab_blocks(request: HttpRequest) -> HttpResponse:
    """The blocks of one workflow, for the select box."""
    workflow = get_object_or_404(_with_version(), slug=_name(request, "workflow"))
    return render(request, "evals/_lab_blocks.html", {"blocks": _blocks(workflow)})


@require_POST
@access.requires(access.SEE)
def lab_backtest(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """A backtest as lines of JSON: how far it is, again and again, and at last the report."""
    trial = Trial.typed(request.POST)
    workflow, faults = _asked(trial)
    if workflow is None or faults:
        # Told as an answer: what is half-typed is no failed request.
        return JsonResponse({"faults": [fault.to_dict() for fault in faults]})
    steps = backtest_in_steps(workflow, trial.block, trial.configs, trial.limit)
    lines = _lines(steps, workflow, trial)
    response = StreamingHttpResponse(_in_own_thread(lines), content_type="application/x-ndjson")
    response["X-Accel-Buffering"] = "no"  # a proxy that keeps the lines back keeps the progress back
    response["Cache-Control"] = "no-store"
    return response


def _lines(steps: Iterator[Backtest], workflow: Workflow, trial: Trial) -> Iterator[str]:
    expected = min(trial.limit, workflow.last_run_number)
    found = None
    for found in steps:
        yield json.dumps({"done": found.count, "of": max(expected, found.count)}) + "\n"
    assert found is not None  # the last step is always given
    html = render_to_string(
        "evals/_backtest.html", {"report": report(found, workflow, trial.block, trial.configs)}
    )
    yield json.dumps({"html": html}) + "\n"


async def _in_own_thread(lines: Iterator[str]) -> AsyncIterator[str]:
    """Work in the request's own thread, line by line: the event loop only passes them on."""
    advance = sync_to_async(lambda: next(lines, None))
    while (line := await advance()) is not None:
        yield line


def _opened(request: HttpRequest) -> Trial:
    """The lab as it opens: an example, or a block or a node somebody came from."""
    trial = Trial()
    node, slug = request.GET.get("node", ""), _name(request, "workflow")
    if node.isdecimal() and len(node) < 19:
        rows = RunNode.objects.select_related("run__workflow", "run__version")
        trial.start_from_node(get_object_or_404(rows, pk=node))
    elif slug:
        block = _name(request, "block")
        workflow = get_object_or_404(_with_version(), slug=slug)
        if block:
            trial.start_from(workflow, block)
        else:
            trial.workflow = slug
    return trial


def _name(request: HttpRequest, which: str) -> str:
    return request.GET.get(which, "").replace("\0", "")


def _backtested(trial: Trial) -> dict[str, Any]:
    """The report of a backtest in one piece, or why there is none."""
    workflow, faults = _asked(trial)
    if workflow is None or faults:
        return {"backtest_faults": faults}
    found = backtest(workflow, trial.block, trial.configs, trial.limit)
    made: BacktestReport = report(found, workflow, trial.block, trial.configs)
    return {"report": made}


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


def _with_version() -> Any:
    return Workflow.objects.select_related("current_version")


def _workflow(slug: str) -> Workflow | None:
    found: Workflow | None = _with_version().filter(slug=slug).first() if slug else None
    return found


def _workflows(chosen: str) -> dict[str, Any]:
    rows = Workflow.objects.order_by("-updated_at").values_list("slug", flat=True)
    found = list(rows[: WORKFLOWS_TO_PICK + 1])
    return {
        "workflows": sorted({*found[:WORKFLOWS_TO_PICK], *([chosen] if chosen else [])}),
        "workflows_to_pick": WORKFLOWS_TO_PICK,
        "is_cut": len(found) > WORKFLOWS_TO_PICK,
    }


def _blocks(workflow: Workflow, chosen: str = "") -> list[tuple[str, int]]:
    """Blocks of the current version, each with how many assertions it has."""
    blocks = blocks_of(workflow.current_version)
    names = to_pick(list(blocks), chosen, BLOCKS_TO_PICK)
    return [(name, len(blocks[name].assertions or ())) for name in names]
