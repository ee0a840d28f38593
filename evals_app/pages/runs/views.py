"""The list of runs: filters, order, pages, selection for compare, export."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from evals_app.pages.responses import stream
from evals_app.pages.runs import export as run_export
from evals_app.pages.runs.listing import (
    MOST_NEWER,
    NEWEST_FIRST,
    SORTS,
    Order,
    RunFilter,
    chunks_of,
    count_before,
    page_of,
)
from workflows_app.display.querystring import PAGE_SIZE, asked_ids
from workflows_app.models import Run, RunQuerySet, Workflow
from workflows_app.security import access

MOST_SUGGESTIONS = 200  # names for the workflow filter
HEADINGS = {"score": "Score", "cost": "Cost", "duration": "Duration", "started": "Started"}
# The same orders where the columns have no heads; the first is the one that needs no word in the address.
ORDERS = {
    "": "Newest first",
    "started": "Oldest first",
    "-score": "Best score first",
    "score": "Worst score first",
    "-cost": "Most expensive first",
    "cost": "Cheapest first",
    "-duration": "Slowest first",
    "duration": "Fastest first",
}
FORMATS = {
    "csv": (run_export.csv_lines, "text/csv"),
    "jsonl": (run_export.json_lines, "application/x-ndjson"),
}


@access.requires(access.SEE)
def run_list(request: HttpRequest) -> HttpResponse:
    """Runs, newest first unless asked otherwise."""
    form = RunFilter(request.GET)
    order = Order.of(request.GET.get("sort", ""))
    runs = form.apply(Run.objects.for_list(), order)
    page = page_of(runs, order, after=request.GET.get("after", ""), before=request.GET.get("before", ""))
    kept = _kept(request)
    is_first_page = not (request.GET.get("after") or request.GET.get("before"))
    shows_newest = is_first_page and order.name == NEWEST_FIRST
    context = {
        "form": form,
        "page": page,
        "headings": [_heading(key, order, kept) for key in SORTS],
        "order": order,
        "orders": ORDERS,
        "left_out": HEADINGS[order.key].lower() if order.key != "started" else "",
        "earlier_url": _address(kept, before=page.earlier) if page.earlier else "",
        "later_url": _address(kept, after=page.later) if page.later else "",
        "is_first_page": is_first_page,
        "shows_newest": shows_newest,
        "rows_url": reverse("run-rows") + _address(kept, **({"newer": page.first} if shows_newest else {})),
        "is_empty": not page.runs and not kept and is_first_page,
        "query": urlencode(kept),
        "is_demo": any(run.workflow.is_demo for run in page.runs),
        "suggestions": Workflow.objects.order_by("slug").values_list("slug", flat=True)[:MOST_SUGGESTIONS],
        "may_start": access.may(request.user, access.START_RUN),
        "may_save": access.may(request.user, "workflows_app.add_workflow"),
    }
    return render(request, "evals/runs.html", context)


@access.requires(access.SEE)
def run_rows(request: HttpRequest) -> HttpResponse:
    """Rows that a page shows, as they are now, and how many runs have come before its first one."""
    context = {
        "runs": Run.objects.for_list().filter(pk__in=asked_ids(request, "run")[:PAGE_SIZE]),
        "query": urlencode(_kept(request)),
        "most_newer": MOST_NEWER,
    }
    if (first := request.GET.get("newer")) is not None:
        runs = RunFilter(request.GET).apply(Run.objects.all())
        context["newer"] = count_before(runs, Order(NEWEST_FIRST), first, MOST_NEWER)
    return render(request, "evals/_run_rows.html", context)


def _kept(request: HttpRequest) -> dict[str, str]:
    """What the address says of filters and order, without where in the list it is."""
    names = [*RunFilter.base_fields, "sort"]
    return {name: request.GET[name] for name in names if request.GET.get(name)}


def _address(kept: dict[str, str], **changed: str) -> str:
    return "?" + urlencode(kept | changed)


def _heading(key: str, order: Order, kept: dict[str, str]) -> dict[str, Any]:
    is_sorted = order.key == key
    # A first click shows the largest, or the newest; a second one reverses it.
    name = key if is_sorted and order.is_descending else f"-{key}"
    direction = "descending" if order.is_descending else "ascending"
    return {
        "key": key,
        "label": HEADINGS[key],
        "url": _address(kept, sort=name),
        "aria_sort": direction if is_sorted else "",
        "arrow": ("↓" if order.is_descending else "↑") if is_sorted else "",
    }


@access.requires(access.SEE)
def run_export_file(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Every run that passes the filters, in the order shown."""
    form, order = RunFilter(request.GET), Order.of(request.GET.get("sort", ""))
    if not form.is_valid():  # an empty file would say that there are none
        return HttpResponseBadRequest(form.errors.as_text(), content_type="text/plain; charset=utf-8")
    runs: RunQuerySet = form.apply(Run.objects.for_list(), order)
    write, content_type = FORMATS[kind]
    response = stream(request, write(chunks_of(runs, order)), content_type)
    response["Content-Disposition"] = f'attachment; filename="runs.{kind}"'
    return response


@access.requires(access.SEE)
def compare_selected(request: HttpRequest) -> HttpResponse:
    """From two ticked rows to their comparison, the newer against the older."""
    found = list(Run.objects.filter(pk__in=asked_ids(request, "run")).order_by("-created_at", "-id")[:3])
    if len(found) != 2:
        messages.warning(request, f"Select two runs to compare; {len(found)} selected.")
        return redirect("run-list")
    return redirect("run-compare", found[0].pk, found[1].pk)
