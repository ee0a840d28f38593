"""One run: its page, the parts that are fetched again while it runs, and what people do with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from evals_app.monitoring.regressions import regression_rows
from evals_app.pages.outputs import read_text, read_values
from evals_app.pages.responses import plain
from evals_app.pages.run.blocks import BlockRow, RunBlocks
from evals_app.pages.run.inspector import Inspector
from evals_app.pages.run.log import announcement, log_lines
from evals_app.suites.case_maker import case_yaml
from workflows_app import services
from workflows_app.display.querystring import asked_number
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode
from workflows_app.security import access
from workflows_app.security.credentials import shown_inputs

MOST_EVENTS = 300  # the latest when the page opens, and as many at once while it is open
MOST_REGRESSIONS = 20
CANCEL = "workflows_app.cancel_run"


def _run(run_id: UUID) -> Run:
    runs = Run.objects.select_related("workflow", "version__workflow", "parent_run__workflow", "rerun_of")
    return get_object_or_404(runs, pk=run_id)


@access.requires(access.SEE)
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Everything about a run; live while it runs."""
    run = _run(run_id)
    # The history first: what happens while the rest is read comes again through the socket.
    events = list(run.events.filter(seq__lte=run.last_seq).order_by("-seq")[:MOST_EVENTS])[::-1]
    context = _parts(request, run)
    row = context["blocks"].first_to_look_at
    regressions = list(run.regressions_found.select_related("workflow", "acknowledged_by").by_urgency())
    context |= {
        "log": log_lines(run, events),
        "log_left_out": run.last_seq - len(events),
        "inspector": _inspector(run, row.node.pk) if row and row.node else None,
        "regressions": regression_rows(regressions[:MOST_REGRESSIONS]),
        "regressions_left_out": len(regressions[MOST_REGRESSIONS:]),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "inputs": read_values(shown_inputs(run)),
        "outputs": read_values(run.outputs or {}),
        "yaml": read_text(run.version.yaml),
        "is_live": run.observed_at is None,
    }
    return render(request, "evals/run.html", context)


@access.requires(access.SEE)
def run_fragments(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What changed after the event that an open page shows last; everything with `part=all`, and at the end."""
    run = _run(run_id)
    shown = asked_number(request, "seq")
    # Not beyond the run's own row: an event that the head does not know yet comes with the next request.
    events = list(run.events.filter(seq__gte=shown, seq__lte=run.last_seq).order_by("seq")[: MOST_EVENTS + 1])
    new = [event for event in events if event.seq > shown]
    context = _parts(request, run)
    blocks = context["blocks"]
    changed = blocks.changed(new, since=events[0].at if events else None)
    is_all = request.GET.get("part") == "all" or run.is_terminal or len(new) > MOST_EVENTS
    context |= {
        "is_all": is_all,
        "changed": changed,
        "changed_graph": None if is_all else blocks.drawn({row.block_id for row in changed}),
        "inspector": _newer_inspector(request, blocks, changed) if new else None,
        "log": log_lines(run, new[:MOST_EVENTS]),
        "announcement": announcement(run, new),
    }
    return render(request, "evals/_run_parts.html", context)


def _newer_inspector(request: HttpRequest, blocks: RunBlocks, changed: list[BlockRow]) -> Inspector | None:
    """What the inspector shows now, if that is another block or has changed."""
    shown = request.GET.get("block", "")
    row = blocks.to_inspect(shown, is_chosen="chosen" in request.GET)
    if row is None or row.node is None or (row.block_id == shown and row not in changed):
        return None
    return _inspector(blocks.run, row.node.pk)


def _parts(request: HttpRequest, run: Run) -> dict[str, Any]:
    return {
        "run": run,
        "blocks": RunBlocks(
            run, page=asked_number(request, "blocks") or 1, is_graph_asked="graph" in request.GET
        ),
        "previous": Run.objects.before(run).only("number").first(),
        "may_start": access.may(request.user, access.START_RUN),
        "may_cancel": access.may(request.user, CANCEL) and not run.is_terminal,
    }


def _inspector(run: Run, pk: int, assertions_page: int = 1) -> Inspector:
    nodes = run.nodes.select_related("child_run__workflow")
    return Inspector(run, get_object_or_404(nodes, pk=pk), assertions_page)


@access.requires(access.SEE)
def node_page(request: HttpRequest, run_id: UUID, pk: int) -> HttpResponse:
    """One node: a part of the run's page for its script, a page of its own for everyone else."""
    run = _run(run_id)
    if request.GET.get("part"):
        return render(request, "evals/_inspector.html", {"run": run, "inspector": _inspector(run, pk)})
    inspector = _inspector(run, pk, asked_number(request, "assertions") or 1)
    return render(request, "evals/node.html", {"run": run, "inspector": inspector})


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


@access.requires(access.SEE)
def run_values(request: HttpRequest, run_id: UUID, what: str) -> HttpResponse:
    """All of a run's inputs or outputs, as JSON."""
    run = _run(run_id)
    values = shown_inputs(run) if what == "inputs" else run.outputs
    return plain(json.dumps(values, ensure_ascii=False, indent=2))


@access.requires(access.SEE)
def run_yaml(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The exact document that ran."""
    return plain(_run(run_id).version.yaml)


@access.requires(access.SEE)
def run_case(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The run as an entry for `eval.cases`."""
    return plain(case_yaml(_run(run_id)))


@access.requires(CANCEL, "POST")
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Stop a run."""
    run = _run(run_id)
    try:
        services.cancel_as(cast("User", request.user), run)
    except services.Refused as refused:
        messages.warning(request, refused.message)
    else:
        messages.success(request, f"Run #{run.number} is cancelled.")
    return redirect("run", run.pk)


@access.requires(access.START_RUN, "POST")
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
