"""One run: its page, the parts that are fetched again while it runs, and what people do with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from evals_app.fixtures import case_yaml
from evals_app.inspector import ALONE, BESIDE, Inspector, Space
from evals_app.outputs import read_text, read_values
from evals_app.run_blocks import RunBlocks
from evals_app.run_log import log_lines
from evals_app.told import tell
from evals_app.views.plain import plain
from workflows_app import access, formats, services
from workflows_app.addresses import asked_number
from workflows_app.credentials import shown_inputs
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode

LATEST_EVENTS = 32  # when the page comes
MOST_EVENTS = 200  # that come later, at once
YAML_BYTES = 4_000
VALUES_BYTES = 2_000  # of the inputs, and of the outputs
MOST_REGRESSIONS = 3
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
        **_regressions(run),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "inputs": read_values(shown_inputs(run), VALUES_BYTES),
        "outputs": read_values(run.outputs or {}, VALUES_BYTES),
        "yaml": read_text(run.version.yaml, YAML_BYTES),
        "is_live": run.observed_at is None,
        "badge_statuses": list(formats.STATUSES),
        "badge_verdicts": list(formats.VERDICTS),
    }
    return render(request, "evals/run.html", context)


@require_safe
@access.requires(access.SEE)
def run_fragments(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What changed since an event, for a page that is open: head and log; with `part=all` graph and blocks too."""
    run = _run(run_id)
    events = run.events.filter(seq__gt=asked_number(request, "seq")).order_by("seq")[:MOST_EVENTS]
    parts = {"log": log_lines(run, events), "is_all": request.GET.get("part") == "all"}
    return render(request, "evals/_run_parts.html", _parts(request, run) | parts)


def _parts(request: HttpRequest, run: Run) -> dict[str, Any]:
    return {
        "run": run,
        "blocks": RunBlocks(
            run, page=asked_number(request, "blocks") or 1, is_graph_asked="graph" in request.GET
        ),
        "previous": Run.objects.before(run).only("number").first(),
        "may_start": access.may(request.user, START),
        "may_cancel": access.may(request.user, CANCEL) and not run.is_terminal,
    }


def _regressions(run: Run) -> dict[str, Any]:
    rows = list(run.regressions_found.select_related("workflow", "acknowledged_by").by_urgency())
    return {
        "regressions": tell(rows[:MOST_REGRESSIONS]),
        "regressions_left_out": len(rows[MOST_REGRESSIONS:]),
    }


def _inspector(run: Run, pk: int, space: Space = BESIDE, assertions_page: int = 1) -> Inspector:
    nodes = run.nodes.select_related("child_run__workflow")
    return Inspector(run, get_object_or_404(nodes, pk=pk), space, assertions_page)


@require_safe
@access.requires(access.SEE)
def node_page(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """One node: a part of the run's page for its script, a page of its own for everyone else."""
    run = _run(run_id)
    if request.GET.get("part"):
        return render(request, "evals/_inspector.html", {"run": run, "inspector": _inspector(run, pk)})
    inspector = _inspector(run, pk, ALONE, asked_number(request, "assertions") or 1)
    return render(request, "evals/node.html", {"run": run, "inspector": inspector})


@require_safe
@access.requires(access.SEE)
def node_text(request: HttpRequest, run_id: UUID, pk: int, what: str) -> HttpResponse:
    """The whole output, the whole prompt, or all that the code printed, as plain text."""
    if what not in TEXTS:
        raise Http404("A node has no such text.")
    rows = RunNode.objects.only("run_id", "details" if what == "printed" else what)
    return plain(TEXTS[what](get_object_or_404(rows, run=run_id, pk=pk)))


TEXTS: dict[str, Callable[[RunNode], str]] = {
    "output": lambda node: node.output,
    "prompt": lambda node: node.prompt,
    "printed": lambda node: str(node.details.get("stdout") or ""),
}


@require_safe
@access.requires(access.SEE)
def run_values(request: HttpRequest, run_id: UUID, what: str) -> HttpResponse:
    """All of a run's inputs or outputs, as JSON."""
    run = _run(run_id)
    values = shown_inputs(run) if what == "inputs" else run.outputs
    return plain(json.dumps(values, ensure_ascii=False, indent=2))


@require_safe
@access.requires(access.SEE)
def run_yaml(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The exact document that ran."""
    return plain(_run(run_id).version.yaml)


@require_safe
@access.requires(access.SEE)
def run_case(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The run as an entry for `eval.cases`."""
    return plain(case_yaml(_run(run_id)))


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
