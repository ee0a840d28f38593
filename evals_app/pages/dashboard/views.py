"""The dashboard: four figures, what needs attention, what runs now, what ran last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evals_app.charts import sparkline
from evals_app.demo.story import RUN_KEY
from evals_app.models import Regression
from evals_app.monitoring import dashboard as figures_of
from evals_app.monitoring.regressions import regression_rows
from workflows_app.display import formats
from workflows_app.display.querystring import asked_ids
from workflows_app.models import Run, RunStatus, Workflow, WorkflowVersion
from workflows_app.security import access

RANGES = ("24h", "7d", "30d")
DEFAULT_RANGE = "7d"
MOST_RUNNING = 20
MOST_LATEST = 10
MOST_ROWS = MOST_RUNNING + MOST_LATEST
MOST_ATTENTION = 15
MOST_COUNTED = 1_000  # failed runs


@access.requires(access.SEE)
def dashboard(request: HttpRequest) -> HttpResponse:
    """What needs attention, and how things go."""
    range_ = _range(request)
    latest = list(_latest())
    context = {
        **_now(),
        "range": range_,
        "ranges": RANGES,
        "figures": _figures(range_) if {"range", "part"} & request.GET.keys() else None,
        **_attention(),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
        "latest": latest,
        "is_settling": any(run.is_settling for run in latest),
        "has_workflows": Workflow.objects.exists(),
        "is_demo": Workflow.objects.filter(is_demo=True).exists(),
    }
    return render(request, "evals/dashboard.html", context)


@access.requires(access.SEE)
def figures(request: HttpRequest) -> HttpResponse:
    """The four figures alone: the page is there before they are."""
    range_ = _range(request)
    return render(request, "evals/_figures.html", {"figures": _figures(range_), "range": range_})


@access.requires(access.SEE)
def now(request: HttpRequest) -> HttpResponse:
    """What changed, for the page to take over: the rows of the runs asked for, or everything that runs change."""
    if "all" not in request.GET and (wanted := asked_ids(request, "run")):
        runs = list(Run.objects.for_list().filter(pk__in=wanted[:MOST_ROWS]))
        rows = {"latest": runs, "running": _progress(run for run in runs if not run.is_terminal)}
        return render(request, "evals/_dashboard_rows.html", rows)
    context = {
        **_now(),
        **_attention(),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "latest": _latest(),
    }
    return render(request, "evals/_dashboard_now.html", context)


def _attention() -> dict[str, Any]:
    """What needs attention as far as there is room for it, and how much there is in all."""
    found = figures_of.needing_attention(MOST_ATTENTION)
    shown = regression_rows(row for row in found if isinstance(row, Regression))
    by_key = {one.row.pk: one for one in shown}
    items = [by_key[one.pk] if isinstance(one, Regression) else one for one in found]
    lately = figures_of.lately()
    regressions = Regression.objects.unresolved().count()
    failures = lately.filter(status=RunStatus.FAILED)[: MOST_COUNTED + 1].count()
    return {
        "attention": items,
        "attention_count": regressions + min(failures, MOST_COUNTED),
        "is_count_cut": failures > MOST_COUNTED,
        "more_regressions": regressions - len(shown),
        "more_failures": min(failures, MOST_COUNTED)
        - sum(one.times for one in items if isinstance(one, figures_of.FailedRun)),
        **{
            f"{word}_lately": lately.with_verdict(word)[:MOST_COUNTED].count() for word in ("failed", "error")
        },
    }


def _range(request: HttpRequest) -> str:
    wanted = request.GET.get("range", DEFAULT_RANGE)
    return wanted if wanted in RANGES else DEFAULT_RANGE


def _figures(range_: str) -> list[dict[str, Any]]:
    found = figures_of.figures(range_)
    return [
        _figure("Pass rate", found["pass_rate"], "pass_rate"),
        _figure("Mean score", found["mean_score"], "score"),
        _figure("Cost", found["cost_usd"], "cost", in_percent=True),
        _figure("Runs", found["runs"], "runs"),
    ]


def _figure(label: str, figure: dict[str, Any], metric: str, *, in_percent: bool = False) -> dict[str, Any]:
    """One number with its change and its recent shape."""
    value, previous = figure["value"], figure["previous"]
    if value is None or previous is None or (previous == 0 and (in_percent or metric == "runs")):
        change = None
    else:
        change = (value / previous - 1) * 100 if in_percent else value - previous
    return {
        "label": label,
        "value": formats.metric(value, metric),
        "change": change,
        "change_metric": f"{metric}_pct" if in_percent else metric,
        "sparkline": sparkline(figure["series"], metric=metric, title=f"{label} over time"),
    }


def _now() -> dict[str, Any]:
    """Runs in progress, oldest first, each with how many blocks its version has."""
    active = Run.objects.active().filter(depth=0).for_list().order_by("created_at")
    # While the demo loads, its story's runs are weeks old and over at once: none of them runs now.
    active = active.exclude(workflow__is_demo=True, external_id__startswith=RUN_KEY)
    found = list(active[: MOST_RUNNING + 1])
    return {"running": _progress(found[:MOST_RUNNING]), "has_more_running": len(found) > MOST_RUNNING}


def _progress(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Runs that are not over, each with how many blocks it has at most."""
    found = list(runs)
    versions = WorkflowVersion.objects.in_bulk({run.version_id for run in found})
    return [
        {"run": run, "blocks": max(_blocks(versions[run.version_id]), run.nodes_done, 1)} for run in found
    ]


def _latest() -> QuerySet[Run]:
    """The newest runs; a child is part of its parent."""
    return Run.objects.for_list().filter(depth=0).order_by("-created_at", "-id")[:MOST_LATEST]


def _blocks(version: WorkflowVersion) -> int:
    definition = version.readable_definition
    return len(definition.blocks) if definition else 0
