"""The list of workflows, one workflow, one of its versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from evals_app.models import BlockStatistics, PinnedBaseline
from evals_app.monitoring.effects import Effect, effects_of, effects_of_version, known_evidence
from evals_app.monitoring.regressions import RegressionRow, regression_rows
from evals_app.monitoring.trends import UnknownTrend, check_block, metrics_of
from evals_app.pages.outputs import read_text
from evals_app.pages.responses import plain
from evals_app.pages.workflow.blocks import BLOCKS_A_PAGE, HISTORY, block_page
from evals_app.pages.workflow.trend_chart import DEFAULT_RANGE, RANGES, title_of, trend_picture
from evals_app.pages.workflows import listing
from workflows_app.display import formats
from workflows_app.display.diff import side_by_side
from workflows_app.display.querystring import ASIDE, address, asked_number, asked_text, page_of
from workflows_app.display.run_form import widgets_of
from workflows_app.graph.definition import drawing_of
from workflows_app.graph.layout import GraphNode
from workflows_app.models import Run, Workflow, WorkflowVersion
from workflows_app.security import access

MOST_RUNS = 10
VERSIONS_A_PAGE = 20
DIALOG_FIELDS = 8  # a form with more has a page of its own
METRICS_AT_ONCE = 7  # as buttons
METRICS_TO_PICK = 100  # among the others
LONGEST_METRIC = 100  # that has a name short enough to be picked
REGRESSIONS_A_PAGE = 10
MOST_SUSPECTED = 10
PICKED = ("metric", "range", "block")  # what a query names of the trend


@access.requires(access.SEE_WORKFLOWS)
def workflow_list(request: HttpRequest) -> HttpResponse:
    """Every workflow, with the results of its last runs."""
    search, state = asked_text(request, "q"), request.GET.get("state", "")
    state = state if state in listing.STATES else ""
    rows, after = listing.page_of(listing.find(search, state), asked_text(request, "after"))
    kept = {name: value for name, value in (("q", search), ("state", state)) if value}
    context = {
        "rows": rows,
        "search": search,
        "state": state,
        "states": listing.STATES,
        "lately": listing.LATELY,
        "is_filtered": bool(search or state or request.GET.get("after")),
        "first_url": f"?{urlencode(kept)}" if request.GET.get("after") else "",
        "next_url": f"?{urlencode(kept | {'after': after})}" if after else "",
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
        "is_demo": any(row.workflow.is_demo for row in rows),
    }
    return render(request, "evals/workflows.html", context)


@access.requires(access.SEE_WORKFLOWS)
def workflow_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One workflow: its worst regression, graph, trends, blocks, runs, regressions and versions."""
    workflow = find(slug)
    rows = {row.node_id: row for row in workflow.block_statistics.defer("state")}
    opened, assertions_page = asked_text(request, "block"), asked_number(request, "assertions") or 1
    blocks = block_page(workflow, rows, asked_number(request, "blocks"), opened, assertions_page)
    regressions = _regressions(request, workflow)
    worse = list(workflow.regressions.unresolved().by_urgency().select_related("acknowledged_by"))
    runs = _latest_runs(workflow)
    definition = workflow.readable_definition
    widgets = widgets_of(definition) if definition else []
    pins = PinnedBaseline.objects.select_related("run", "version", "pinned_by").defer("version__yaml")
    context = {
        "workflow": workflow,
        "is_readable": definition is not None,
        "graph": _graph(
            request, workflow, rows, {one.node_id for one in worse}, {row["id"] for row in blocks}
        ),
        "trend": _trend(request, workflow)
        if any(name in request.GET for name in (*PICKED, "part"))
        else None,
        "blocks": blocks,
        "regressions": regressions,
        "alarm": next(iter(regression_rows(worse[:1])), None),
        "worse_count": len(worse),
        "others_count": len(worse[1:]),
        "runs": runs,
        "is_settling": any(run.is_settling for run in runs),
        "versions": _versions(request, workflow, list(rows.values())),
        "pinned": pins.filter(workflow=workflow).first(),
        "widgets": widgets,
        "has_run_dialog": len(widgets) <= DIALOG_FIELDS,
        "runs_with_defaults": not any(widget.is_required for widget in widgets),
        **permissions(request),
    }
    return render(request, "evals/workflow.html", context)


@access.requires(access.SEE_WORKFLOWS)
def workflow_trend(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart of the workflow or of one block, with its pickers: a part that the page loads later."""
    workflow = find(slug)
    if request.GET.get("small"):
        block = _block(request, workflow)
        picture = trend_picture(workflow, block, "score", str(HISTORY), width=240, height=150)
        return render(request, "evals/_block_chart.html", {"block": block, "chart": picture["chart"]})
    return render(request, "evals/_trend.html", {"workflow": workflow, "trend": _trend(request, workflow)})


@access.requires(access.SEE_WORKFLOWS)
def numbered_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """A run by its number, as people refer to it."""
    return redirect(get_object_or_404(Run.objects.only("pk"), workflow__slug=slug, number=number))


@access.requires(access.SEE_WORKFLOWS)
def workflow_now(request: HttpRequest, slug: str) -> HttpResponse:
    """The latest runs alone, which the page loads again as they change."""
    workflow = find(slug)
    return render(
        request, "evals/_workflow_runs.html", {"workflow": workflow, "runs": _latest_runs(workflow)}
    )


@access.requires(access.SEE_WORKFLOWS)
def version_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version beside the one before it, and what it changed in every block."""
    workflow = find(slug)
    versions = workflow.versions.select_related("author")
    version = get_object_or_404(versions, number=number)
    against = _other_version(request, workflow, number)
    rows = list(workflow.block_statistics.defer("state").order_by("node_id"))
    effects = effects_of_version(rows, number, known_evidence(workflow, [number]))
    suspected = workflow.regressions.filter(suspected__workflow_version=number).select_related(
        "acknowledged_by"
    )
    neighbours = workflow.versions.filter(number__in=(number - 1, number + 1)).values_list(
        "number", flat=True
    )
    context = {
        "workflow": workflow,
        "version": version,
        "against": against,
        "diff": side_by_side(against.yaml, version.yaml).page(asked_number(request, "lines"))
        if against
        else None,
        "text": read_text(version.yaml),
        "old_title": f"Version {against.number}" if against else "",
        "new_title": f"Version {number}",
        "blocks": page_of(request, "blocks", _known_first(effects), BLOCKS_A_PAGE),
        "previous": number - 1 if number - 1 in neighbours else None,
        "next": number + 1 if number + 1 in neighbours else None,
        "suspected_of": regression_rows(suspected.by_urgency()[:MOST_SUSPECTED]),
        "is_pinned": PinnedBaseline.objects.filter(workflow=workflow, version=version).exists(),
        "runs": list(version.runs.for_list().order_by("-created_at")[:5]),
        **permissions(request),
    }
    return render(request, "evals/version.html", context)


@access.requires(access.SEE_WORKFLOWS)
def version_yaml(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The YAML of a version."""
    version = get_object_or_404(WorkflowVersion.objects.only("yaml"), workflow__slug=slug, number=number)
    return plain(version.yaml)


def _known_first(effects: Mapping[str, Sequence[Effect]]) -> list[tuple[str, Sequence[Effect]]]:
    """The blocks that a version affected, those with evidence first."""
    found = [(name, of_block) for name, of_block in effects.items() if of_block]
    return sorted(found, key=lambda block: not any(one.word in ("worse", "better") for one in block[1]))


def find(slug: str) -> Workflow:
    """The workflow of a path, with its current version."""
    return get_object_or_404(Workflow.objects.select_related("current_version__author"), slug=slug)


def permissions(request: HttpRequest) -> dict[str, bool]:
    """Which buttons the reader gets."""
    names = {
        "may_start": access.START_RUN,
        "may_handle": "evals_app.handle_regression",
        "may_save": "workflows_app.change_workflow",
        "may_pin": "workflows_app.pin_baseline",
    }
    return {name: access.may(request.user, permission) for name, permission in names.items()}


def _graph(
    request: HttpRequest,
    workflow: Workflow,
    rows: dict[str, BlockStatistics],
    worse: Collection[str],
    shown: Collection[str],
) -> Any:
    """The definition's graph; a block shows its typical score, is red while a regression is open, and leads to its card."""
    definition = workflow.readable_definition
    if definition is None:
        return ""

    def decorate(node: GraphNode) -> GraphNode:
        row = rows.get(node.id)
        typical = row.compared_with.get("score") if row else None
        return replace(
            node,
            href=f"#block-{node.id}"
            if node.id in shown
            else f"{address(request, block=node.id, blocks='', assertions='')}#block-{node.id}",
            score=typical["mean"] if typical else None,
            status="failed" if node.id in worse else None,
        )

    return drawing_of(definition, decorate, is_asked="graph" in request.GET)


def _block(request: HttpRequest, workflow: Workflow) -> str:
    """The block an address names; a block that is no longer in the document still has its history."""
    block = asked_text(request, "block")
    try:
        check_block(workflow, block)
    except UnknownTrend as error:
        raise Http404(str(error)) from None
    return block


def _range(request: HttpRequest) -> str:
    """The range an address names, one of those that can be picked."""
    asked = asked_text(request, "range") or DEFAULT_RANGE
    if asked not in RANGES:
        raise Http404(f"range: {asked!r} is no range; use one of {', '.join(RANGES)}.")
    return asked


def _trend(request: HttpRequest, workflow: Workflow) -> dict[str, Any]:
    block = _block(request, workflow)
    metric = asked_text(request, "metric") or "score"
    range_ = _range(request)
    try:
        picture = trend_picture(workflow, block, metric, range_)
    except UnknownTrend as error:
        raise Http404(str(error)) from None
    metrics = [name for name in metrics_of(workflow, block) if len(name) <= LONGEST_METRIC]
    first = list(dict.fromkeys((*metrics[:METRICS_AT_ONCE], metric)))
    definition = workflow.readable_definition
    return {
        "block": block,
        "metric": metric,
        "title": title_of(metric),
        "range": range_,
        "picture": picture,
        "metrics": [
            (name, formats.metric_named(name).label, address(request, metric=name)) for name in first
        ],
        "more_metrics": metrics[METRICS_AT_ONCE : METRICS_AT_ONCE + METRICS_TO_PICK],
        "ranges": [(name, words, address(request, range=name)) for name, words in RANGES.items()],
        "blocks": list(definition.blocks) if definition else [],
        "kept": [
            (name, value)
            for name, value in request.GET.items()
            if name not in (*PICKED, *ASIDE, "assertions")
        ],
    }


def _latest_runs(workflow: Workflow) -> list[Run]:
    return list(workflow.runs.for_list().order_by("-number")[:MOST_RUNS])


def _regressions(request: HttpRequest, workflow: Workflow) -> Page[RegressionRow]:
    """The regressions that need somebody first, the resolved ones last."""
    rows = workflow.regressions.select_related("acknowledged_by").by_urgency()
    page = page_of(request, "regressions", rows, REGRESSIONS_A_PAGE)
    page.object_list = regression_rows(page.object_list)
    return page


def _versions(request: HttpRequest, workflow: Workflow, rows: list[BlockStatistics]) -> Page[dict[str, Any]]:
    versions = workflow.versions.select_related("author").defer("yaml")
    page = page_of(request, "versions", versions, VERSIONS_A_PAGE)
    effects = effects_of(rows, known_evidence(workflow, [version.number for version in page.object_list]))
    page.object_list = [
        {"version": version, "effect": next(iter(effects.get(version.number, ())), None)}
        for version in page.object_list
    ]
    return page


def _other_version(request: HttpRequest, workflow: Workflow, number: int) -> WorkflowVersion | None:
    """The version to compare with: the one asked for, else the one before."""
    if wanted := asked_number(request, "against"):
        return get_object_or_404(workflow.versions, number=wanted)
    return workflow.versions.filter(number__lt=number).order_by("-number").first()
