"""One run: its page, the parts that are fetched again while it runs, and what people do with it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from evals_app.fixtures import case_yaml
from evals_app.inspector import Inspector
from evals_app.outputs import read_output
from evals_app.regressions import sentence
from evals_app.run_blocks import RunBlocks
from evals_app.run_log import log_lines
from evals_app.views.workflows import Told
from workflows_app import access, formats, services
from workflows_app.credentials import shown_inputs
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode

LATEST_EVENTS = 120  # when the page comes
MOST_EVENTS = 200  # that come later, at once
MOST_YAML = 8_000
START, CANCEL = "workflows_app.start_run", "workflows_app.cancel_run"


def _run(run_id: UUID) -> Run:
    runs = Run.objects.select_related("workflow", "version__workflow", "parent_run__workflow", "rerun_of")
    return get_object_or_404(runs, pk=run_id)


@require_safe
@access.requires(access.SEE)
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Everything about a run; live while it runs."""
    run = _run(run_id)
    # The history first: what happens while the rest is read comes again through the socket.
    events = list(run.events.filter(seq__lte=run.last_seq).order_by("-seq")[:LATEST_EVENTS])[::-1]
    context = _parts(request, run)
    row = context["blocks"].first_to_look_at
    context |= {
        "log": log_lines(run, events),
        "log_left_out": run.last_seq - len(events),
        "inspector": _inspector(run, row.node.pk) if row and row.node else None,
        "regressions": _regressions(run),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "inputs": read_output(json.dumps(shown_inputs(run), ensure_ascii=False)) if run.inputs else None,
        "outputs": read_output(json.dumps(run.outputs, ensure_ascii=False)) if run.outputs else None,
        "yaml_lines": run.version.yaml[:MOST_YAML].splitlines(),
        "yaml_is_cut": len(run.version.yaml) > MOST_YAML,
        "is_live": run.observed_at is None,
        "badge_statuses": list(formats.STATUSES),
        "badge_verdicts": list(formats.VERDICTS),
    }
    return render(request, "evals/run.html", context)


@require_safe
@access.requires(access.SEE)
def run_fragments(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What changed since an event, for a page that is open: head and log; with `all` graph and blocks too."""
    run = _run(run_id)
    after = request.GET.get("after", "0")
    since = int(after) if after.isdecimal() and len(after) < 10 else 0
    events = run.events.filter(seq__gt=since).order_by("seq")[:MOST_EVENTS]
    parts = {"log": log_lines(run, events), "is_all": "all" in request.GET}
    return render(request, "evals/_run_parts.html", _parts(request, run) | parts)


def _parts(request: HttpRequest, run: Run) -> dict[str, Any]:
    return {
        "run": run,
        "blocks": RunBlocks(run, is_whole="whole" in request.GET),
        "previous": Run.objects.before(run).only("number").first(),
        "may_start": access.may(request.user, START),
        "may_cancel": access.may(request.user, CANCEL) and not run.is_terminal,
    }


def _regressions(run: Run) -> list[Told]:
    rows = run.regressions_found.select_related("acknowledged_by").by_evidence()
    return [Told(one, sentence(one, run.workflow.slug)) for one in rows]


def _inspector(run: Run, pk: int) -> Inspector:
    nodes = run.nodes.select_related("child_run__workflow")
    return Inspector(run, get_object_or_404(nodes, pk=pk))


@require_safe
@access.requires(access.SEE)
def node_page(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """One node: a part of the run's page for its script, a page of its own for everyone else."""
    run = _run(run_id)
    template = "evals/_inspector.html" if request.GET.get("part") else "evals/node.html"
    return render(request, template, {"run": run, "inspector": _inspector(run, pk)})


@require_safe
@access.requires(access.SEE)
def node_output(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """The whole output as plain text."""
    node = get_object_or_404(RunNode.objects.only("output"), run=run_id, pk=pk)
    return _plain(node.output)


@require_safe
@access.requires(access.SEE)
def run_yaml(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The exact document that ran."""
    return _plain(_run(run_id).version.yaml)


@require_safe
@access.requires(access.SEE)
def run_case(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The run as an entry for `eval.cases`."""
    return _plain(case_yaml(_run(run_id)))


def _plain(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_POST
@access.requires(CANCEL)
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Stop a run."""
    run = _run(run_id)
    try:
        services.cancel_run(run)
    except services.Refused as refused:
        messages.warning(request, refused.message)
    else:
        messages.success(request, f"Run #{run.number} is cancelled.")
    return redirect("run", run.pk)


@require_POST
@access.requires(START)
def rerun(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Start the same version with the same inputs, and go there."""
    run = _run(run_id)
    try:
        again = services.rerun(run, user=request.user if request.user.is_authenticated else None)
    except services.Refused as refused:
        messages.error(request, refused.message)
        return redirect("run", run.pk)
    except InvalidDocument as invalid:
        messages.error(request, "The inputs no longer fit: " + "; ".join(map(str, invalid.faults)))
        return redirect("run", run.pk)
    messages.success(request, f"Run #{again.number} started.")
    return redirect("run", again.pk)
