"""The list of workflows, one workflow, one of its versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from evals_app import workflow_list as listing
from evals_app.blocks import BLOCKS_A_PAGE, HISTORY, block_page, block_row
from evals_app.effects import Effect, effects_of, effects_of_version, evidence_word
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
MOST_RUNS = 6
MOST_DRAWN = 12  # blocks in a graph that nobody asked for: a larger one is as heavy as the rest of the page
VERSIONS_A_PAGE = 5
REGRESSIONS_A_PAGE = 4
MOST_SUSPECTED = 20
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
    blocks = block_page(workflow, rows, _number(request, "blocks"), _text(request, "block"))
    regressions = _regressions(workflow, _number(request, "regressions"))
    worse = list(workflow.regressions.unresolved().by_evidence().select_related("acknowledged_by"))
    definition = definition_of(workflow)
    widgets = widgets_of(definition) if definition else []
    is_asked_for = any(name in request.GET for name in ("metric", "range", "block"))
    context = {
        "workflow": workflow,
        "is_readable": definition is not None,
        "graph": _graph(workflow, rows, {one.node_id for one in worse}, {row.id for row in blocks})
        if blocks.paginator.count <= MOST_DRAWN or "graph" in request.GET
        else "",
        "trend": _trend(request, workflow) if is_asked_for else None,
        "blocks": blocks,
        "regressions": regressions,
        "alarm": Told(worse[0], sentence(worse[0], slug)) if worse else None,
        "worse_count": len(worse),
        "runs": _latest_runs(workflow),
        "versions": _versions(workflow, list(rows.values()), _number(request, "versions")),
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
        picture = trend_picture(workflow, block, "score", str(HISTORY), width=240, height=150)
        return render(request, "evals/_trend_small.html", {"picture": picture})
    response = render(
        request, "evals/_trend.html", {"workflow": workflow, "trend": _trend(request, workflow)}
    )
    if request.GET:  # something was picked: the page's address says what, to be sent on and gone back to
        response["HX-Push-Url"] = f"{workflow.get_absolute_url()}?{request.GET.urlencode()}"
    return response


@require_safe
@access.requires(SEE)
def workflow_block(request: HttpRequest, slug: str) -> HttpResponse:
    """What is usual for a block, and its assertions: a part of the page that comes when somebody scrolls to it."""
    workflow = find(slug)
    block = block_row(workflow, _text(request, "block"))
    if block is None:
        raise Http404(f"{slug} has no such block.")
    return render(request, "evals/_block_body.html", {"workflow": workflow, "block": block})


@require_safe
@access.requires(SEE)
def numbered_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """A run by its number, which people say and write down."""
    return redirect(get_object_or_404(Run.objects.only("pk"), workflow__slug=slug, number=number))


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
        "blocks": _effects_page(effects, _number(request, "blocks")),
        "kept": f"against={against.number}&" if against and "against" in request.GET else "",
        "previous": number - 1 if number - 1 in neighbours else None,
        "next": number + 1 if number + 1 in neighbours else None,
        "suspected_of": _suspected_of(workflow, number),
        "runs": list(version.runs.for_list().order_by("-created_at")[:5]),
        **permissions(request),
    }
    return render(request, "evals/version.html", context)


def _effects_page(effects: Mapping[str, Sequence[Effect]], number: int) -> Page[Any]:
    """The blocks a version had an effect on, those first that it is known of."""
    known = [(name, found) for name, found in effects.items() if found]
    known.sort(key=lambda block: not any(one.word in ("worse", "better") for one in block[1]))
    return Paginator(known, BLOCKS_A_PAGE).get_page(number or 1)


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


def _number(request: HttpRequest, name: str) -> int:
    """A small whole number of the address; 0 where it has none."""
    wanted = request.GET.get(name, "")
    return int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 9 else 0


def _graph(
    workflow: Workflow, rows: dict[str, BlockStatistics], worse: Collection[str], shown: Collection[str]
) -> Any:
    """The definition's graph; a block shows its usual score, is red while a regression is open, and leads to its card."""
    definition = definition_of(workflow)
    if definition is None:
        return ""

    def dress(node: GraphNode) -> GraphNode:
        row = rows.get(node.id)
        usual = ((row.pinned or row.baseline) if row else {}).get("score")
        return replace(
            node,
            href=f"#block-{node.id}"
            if node.id in shown
            else f"?{urlencode({'block': node.id})}#block-{node.id}",
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
        "blocks": list(definition.blocks) if definition else [],
    }


def _latest_runs(workflow: Workflow) -> list[Run]:
    return list(workflow.runs.for_list().order_by("-number")[:MOST_RUNS])


def _regressions(workflow: Workflow, number: int) -> Page[Told]:
    """Open ones by evidence, then those that are over."""
    rows = workflow.regressions.select_related("acknowledged_by").by_urgency()
    page: Page[Any] = Paginator(rows, REGRESSIONS_A_PAGE).get_page(number or 1)
    page.object_list = [Told(one, sentence(one, workflow.slug)) for one in page.object_list]
    return page


def _versions(workflow: Workflow, rows: list[BlockStatistics], number: int) -> Page[dict[str, Any]]:
    effects = effects_of(rows)
    versions = workflow.versions.select_related("author").defer("yaml")
    page: Page[Any] = Paginator(versions, VERSIONS_A_PAGE).get_page(number or 1)
    page.object_list = [
        {"version": version, "effect": next(iter(effects.get(version.number, ())), None)}
        for version in page.object_list
    ]
    return page


def _pinned(workflow: Workflow) -> PinnedBaseline | None:
    rows = PinnedBaseline.objects.select_related("run", "version", "pinned_by").defer("version__yaml")
    return rows.filter(workflow=workflow).first()


def _other_version(request: HttpRequest, workflow: Workflow, number: int) -> WorkflowVersion | None:
    """The version to compare with: the one asked for, else the one before."""
    if wanted := _number(request, "against"):
        return get_object_or_404(workflow.versions, number=wanted)
    return workflow.versions.filter(number__lt=number).order_by("-number").first()


def _suspected_of(workflow: Workflow, number: int) -> list[Told]:
    rows = Regression.objects.filter(workflow=workflow, suspected__workflow_version=number).by_urgency()
    return [Told(one, sentence(one, workflow.slug)) for one in rows[:MOST_SUSPECTED]]
