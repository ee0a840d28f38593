"""The dashboard: four figures, what needs attention, what runs now, what ran last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from evals_app import dashboard as figures_of
from evals_app.charts import sparkline
from evals_app.demo.story import TOLD
from evals_app.models import Regression
from evals_app.told import Told, tell
from workflows_app import access, formats
from workflows_app.models import Run, Workflow, WorkflowVersion

RANGES = {"24h": "24 h", "7d": "7 d", "30d": "30 d"}
BEFORE = {"24h": "24 h before", "7d": "7 d before", "30d": "30 d before"}
DEFAULT_RANGE = "7d"
MOST_RUNNING = 20
MOST_LATEST = 10
MOST_ATTENTION = 15
MOST_COUNTED = 1_000  # failed runs


@dataclass(frozen=True)
class Figure:
    """One number with its change and its recent shape."""

    label: str
    value: str
    change: float | None
    change_metric: str
    sparkline: SafeString


@dataclass(frozen=True)
class Progress:
    """A run that is not over, and how many blocks it has at most."""

    run: Run
    blocks: int


@require_safe
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
        "before": BEFORE[range_],
        **_attention(),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
        "latest": latest,
        "is_settling": any(run.is_settling for run in latest),
        "has_workflows": Workflow.objects.exists(),
        "is_demo": Workflow.objects.filter(is_demo=True).exists(),
    }
    return render(request, "evals/dashboard.html", context)


@require_safe
@access.requires(access.SEE)
def figures(request: HttpRequest) -> HttpResponse:
    """The four figures alone: the page is there before they are."""
    range_ = _range(request)
    context = {
        "figures": _figures(range_),
        "range": range_,
        "ranges": RANGES,
        "before": BEFORE[range_],
    }
    return render(request, "evals/_figures.html", context)


@require_safe
@access.requires(access.SEE)
def now(request: HttpRequest) -> HttpResponse:
    """What runs now, what ran last and what needs attention, for the page to take over as it changes."""
    context = {
        **_now(),
        **_attention(),
        "may_handle": access.may(request.user, "evals_app.handle_regression"),
        "latest": _latest(),
    }
    return render(request, "evals/_dashboard_now.html", context)


@dataclass(frozen=True)
class Item:
    """Something that needs attention: a regression, or a run that failed, perhaps not for the first time."""

    told: Told | None = None
    run: Run | None = None
    times: int = 1

    @property
    def sentence(self) -> str:
        return self.told.sentence if self.told else figures_of.failure_sentence(self.run) if self.run else ""


def _attention() -> dict[str, Any]:
    """What needs attention as far as there is room for it, and how much there is in all."""
    found = figures_of.needing_attention(MOST_ATTENTION)
    told = {one.row.pk: one for one in tell(row for row in found if isinstance(row, Regression))}
    items = [
        Item(told[one.pk]) if isinstance(one, Regression) else Item(run=one.run, times=one.times)
        for one in found
    ]
    regressions = Regression.objects.unresolved().count()
    failures = figures_of.failed_lately()[: MOST_COUNTED + 1].count()
    return {
        "attention": items,
        "attention_count": regressions + min(failures, MOST_COUNTED),
        "is_count_cut": failures > MOST_COUNTED,
        "more_regressions": regressions - len(told),
        "more_failures": min(failures, MOST_COUNTED) - sum(item.times for item in items if item.run),
        **{
            f"{word}_lately": figures_of.judged_lately(word)[:MOST_COUNTED].count()
            for word in ("failed", "error")
        },
    }


def _range(request: HttpRequest) -> str:
    wanted = request.GET.get("range", DEFAULT_RANGE)
    return wanted if wanted in RANGES else DEFAULT_RANGE


def _figures(range_: str) -> list[Figure]:
    found = figures_of.figures(range_)
    return [
        _figure("Pass rate", found["pass_rate"], "pass_rate"),
        _figure("Mean score", found["mean_score"], "score"),
        _figure("Cost", found["cost_usd"], "cost", in_percent=True),
        _figure("Runs", found["runs"], "runs"),
    ]


def _figure(label: str, figure: dict[str, Any], metric: str, *, in_percent: bool = False) -> Figure:
    value, previous = figure["value"], figure["previous"]
    change: float | None = None
    has_before = previous != 0 if metric == "runs" else previous is not None
    if value is not None and has_before:
        change = value - previous
        if in_percent:
            change = (value / previous - 1) * 100 if previous else None
    series = sparkline(figure["series"], metric=metric, title=f"{label} over time")
    return Figure(
        label, formats.metric(value, metric), change, f"{metric}_pct" if in_percent else metric, series
    )


def _now() -> dict[str, Any]:
    """Runs in progress, oldest first, each with how many blocks its version has."""
    active = Run.objects.active().filter(depth=0).for_list().order_by("created_at")
    # While the demo loads, its story's runs are weeks old and over at once: none of them runs now.
    active = active.exclude(workflow__is_demo=True, external_id__startswith=TOLD)
    found = list(active[: MOST_RUNNING + 1])
    versions = WorkflowVersion.objects.in_bulk({run.version_id for run in found})
    running = [
        Progress(run, max(_blocks(versions[run.version_id]), run.nodes_done, 1))
        for run in found[:MOST_RUNNING]
    ]
    return {"running": running, "has_more_running": len(found) > MOST_RUNNING}


def _latest() -> QuerySet[Run]:
    """The newest runs; a child is part of its parent."""
    return Run.objects.for_list().filter(depth=0).order_by("-created_at", "-id")[:MOST_LATEST]


def _blocks(version: WorkflowVersion) -> int:
    definition = version.readable_definition
    return len(definition.blocks) if definition else 0
