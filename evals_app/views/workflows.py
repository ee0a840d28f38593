"""The list of workflows, one workflow, one of its versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evals_app import workflow_list as listing
from evals_app.blocks import block_rows
from evals_app.effects import effects_of, effects_of_version, evidence_word
from evals_app.models import BlockStatistics, PinnedBaseline, Regression, RegressionState
from evals_app.regressions import sentence
from evals_app.trend_picture import DEFAULT_RANGE, METRIC_NAMES, RANGES, trend_picture
from evals_app.trends import metrics_of
from workflows_app import access
from workflows_app.diff import side_by_side
from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.graph import GraphNode, definition_graph, graph_svg, layout
from workflows_app.models import Run, Workflow, WorkflowVersion
from workflows_app.run_form import widgets_of

SEE = "workflows_app.view_workflow"
MOST_RUNS = 10
MOST_VERSIONS = 50
MOST_REGRESSIONS = 20
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Told:
    """A regression and the sentence that matters about it."""

    row: Regression
    sentence: str

    @property
    def is_over(self) -> bool:
        return self.row.state == RegressionState.RESOLVED

    @property
    def suspected_version(self) -> int | None:
        return (self.row.suspected or {}).get("workflow_version")

    @property
    def evidence(self) -> str:
        return evidence_word(self.row.evidence)


@require_safe
@access.requires(SEE)
def workflow_list(request: HttpRequest) -> HttpResponse:
    """Every workflow, with how it did lately."""
    search, state = _text(request, "q"), request.GET.get("state", "")
    state = state if state in listing.STATES else ""
    rows, after = listing.page_of(listing.find(search, state), _text(request, "after"))
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


@require_safe
@access.requires(SEE)
def workflow_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One workflow: what is wrong with it, its graph, its trends, blocks, runs, regressions and versions."""
    workflow = find(slug)
    rows = {row.node_id: row for row in workflow.block_statistics.defer("state")}
    blocks, left_out = block_rows(workflow, rows, shows_all=request.GET.get("blocks") == "all")
    regressions = _regressions(workflow)
    definition = definition_of(workflow)
    widgets = widgets_of(definition) if definition else []
    is_asked_for = any(name in request.GET for name in ("metric", "range", "block"))
    context = {
        "workflow": workflow,
        "is_readable": definition is not None,
        "graph": _graph(workflow, rows, regressions),
        "trend": _trend(request, workflow) if is_asked_for else None,
        "blocks": blocks,
        "left_out": left_out,
        "regressions": regressions,
        "alarm": [one for one in regressions if not one.is_over],
        "runs": _latest_runs(workflow),
        "versions": _versions(workflow, list(rows.values())),
        "pinned": _pinned(workflow),
        "widgets": widgets,
        "runs_with_defaults": not any(widget.is_required for widget in widgets),
        **permissions(request),
    }
    return render(request, "evals/workflow.html", context)


@require_safe
@access.requires(SEE)
def workflow_trend(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart of the workflow or of one block, with its pickers: a part of the page that comes after it."""
    workflow = find(slug)
    if request.GET.get("small"):
        block = _block(request, workflow)
        picture = trend_picture(workflow, block, "score", DEFAULT_RANGE, width=420, height=150)
        return render(request, "evals/_trend_small.html", {"picture": picture})
    response = render(
        request, "evals/_trend.html", {"workflow": workflow, "trend": _trend(request, workflow)}
    )
    if request.GET:  # something was picked: the page's address says what, to be sent on and gone back to
        response["HX-Push-Url"] = f"{workflow.get_absolute_url()}?{request.GET.urlencode()}"
    return response


@require_safe
@access.requires(SEE)
def workflow_now(request: HttpRequest, slug: str) -> HttpResponse:
    """The latest runs alone, for the page to take over as they change."""
    workflow = find(slug)
    return render(
        request, "evals/_workflow_runs.html", {"workflow": workflow, "runs": _latest_runs(workflow)}
    )


@require_safe
@access.requires(SEE)
def version_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version beside the one before it, and what it changed in every block."""
    workflow = find(slug)
    versions = workflow.versions.select_related("author")
    version = get_object_or_404(versions, number=number)
    against = _other_version(request, workflow, number)
    rows = list(workflow.block_statistics.defer("state").order_by("node_id"))
    effects = effects_of_version(rows, number)
    neighbours = workflow.versions.filter(number__in=(number - 1, number + 1)).values_list(
        "number", flat=True
    )
    context = {
        "workflow": workflow,
        "version": version,
        "against": against,
        "diff": side_by_side(against.yaml, version.yaml) if against else None,
        "old_title": f"Version {against.number}" if against else "",
        "new_title": f"Version {number}",
        "effects": [(name, found) for name, found in effects.items() if found],
        "previous": number - 1 if number - 1 in neighbours else None,
        "next": number + 1 if number + 1 in neighbours else None,
        "suspected_of": _suspected_of(workflow, number),
        "runs": list(version.runs.for_list().order_by("-created_at")[:5]),
        **permissions(request),
    }
    return render(request, "evals/version.html", context)


def find(slug: str) -> Workflow:
    """The workflow of a path, with its current version."""
    return get_object_or_404(Workflow.objects.select_related("current_version__author"), slug=slug)


def definition_of(workflow: Workflow) -> WorkflowDefinition | None:
    """What the current version says, where there is one that can be read."""
    return workflow.current_version.readable_definition if workflow.current_version else None


def permissions(request: HttpRequest) -> dict[str, bool]:
    """What the buttons ask about the reader."""
    names = {
        "may_start": "workflows_app.start_run",
        "may_handle": "evals_app.handle_regression",
        "may_save": "workflows_app.change_workflow",
        "may_pin": "workflows_app.pin_baseline",
    }
    return {name: access.may(request.user, permission) for name, permission in names.items()}


def _text(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").replace("\0", "").strip()[:LONGEST_TEXT]


def _graph(workflow: Workflow, rows: dict[str, BlockStatistics], regressions: list[Told]) -> Any:
    """The definition's graph; a block shows its usual score, and is red while a regression is open."""
    definition = definition_of(workflow)
    if definition is None:
        return ""
    worse = {one.row.node_id for one in regressions if not one.is_over}

    def dress(node: GraphNode) -> GraphNode:
        row = rows.get(node.id)
        usual = ((row.pinned or row.baseline) if row else {}).get("score")
        return replace(
            node,
            href=f"#block-{node.id}",
            score=usual["mean"] if usual else None,
            status="failed" if node.id in worse else None,
        )

    return graph_svg(layout(*definition_graph(definition, dress)))


def _block(request: HttpRequest, workflow: Workflow) -> str:
    """The block an address names; a block that is no longer in the document still has its history."""
    block = _text(request, "block")
    definition = definition_of(workflow)
    is_known = not block or (definition is not None and block in definition.blocks)
    if not is_known and not workflow.block_statistics.filter(node_id=block).exists():
        raise Http404(f"{workflow.slug} has no block {block!r}.")
    return block


def _trend(request: HttpRequest, workflow: Workflow) -> dict[str, Any]:
    block = _block(request, workflow)
    metric = _text(request, "metric") or "score"
    range_ = request.GET.get("range", DEFAULT_RANGE)
    range_ = range_ if range_ in RANGES else DEFAULT_RANGE
    metrics = metrics_of(workflow, block) if block else list(METRIC_NAMES)
    if metric not in metrics:
        metrics.append(metric)

    def link(**changed: str) -> str:
        wanted = {"block": block, "metric": metric, "range": range_} | changed
        return "?" + urlencode({name: value for name, value in wanted.items() if value})

    definition = definition_of(workflow)
    return {
        "block": block,
        "metric": metric,
        "metric_name": METRIC_NAMES.get(metric, metric),
        "range": range_,
        "range_name": RANGES[range_],
        "picture": trend_picture(workflow, block, metric, range_),
        "metrics": [(name, METRIC_NAMES.get(name, name), link(metric=name)) for name in metrics],
        "ranges": [(name, words, link(range=name)) for name, words in RANGES.items()],
        "blocks": [
            ("", "Whole workflow"),
            *((name, name) for name in (definition.blocks if definition else ())),
        ],
    }


def _latest_runs(workflow: Workflow) -> list[Run]:
    return list(workflow.runs.for_list().order_by("-number")[:MOST_RUNS])


def _regressions(workflow: Workflow) -> list[Told]:
    """Open ones by evidence, then those that are over."""
    rows = Regression.objects.filter(workflow=workflow).select_related("acknowledged_by")
    active = list(rows.unresolved().by_evidence()[:MOST_REGRESSIONS])
    over = list(rows.filter(state=RegressionState.RESOLVED)[:MOST_REGRESSIONS])
    return [Told(one, sentence(one, workflow.slug)) for one in (*active, *over)]


def _versions(workflow: Workflow, rows: list[BlockStatistics]) -> list[dict[str, Any]]:
    effects = effects_of(rows)
    found = workflow.versions.select_related("author").defer("yaml")[:MOST_VERSIONS]
    return [
        {"version": version, "effect": next(iter(effects.get(version.number, ())), None)} for version in found
    ]


def _pinned(workflow: Workflow) -> PinnedBaseline | None:
    rows = PinnedBaseline.objects.select_related("run", "version", "pinned_by").defer("version__yaml")
    return rows.filter(workflow=workflow).first()


def _other_version(request: HttpRequest, workflow: Workflow, number: int) -> WorkflowVersion | None:
    """The version to compare with: the one asked for, else the one before."""
    wanted = request.GET.get("against", "")
    if wanted.isdecimal() and len(wanted) < 9:
        return get_object_or_404(workflow.versions, number=int(wanted))
    return workflow.versions.filter(number__lt=number).order_by("-number").first()


def _suspected_of(workflow: Workflow, number: int) -> list[Told]:
    rows = Regression.objects.filter(workflow=workflow, suspected__workflow_version=number)
    return [Told(one, sentence(one, workflow.slug)) for one in rows[:MOST_REGRESSIONS]]
