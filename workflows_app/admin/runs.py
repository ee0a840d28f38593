"""Runs, nodes and events: facts to search, never to edit."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workflows_app.admin.facts import (
    MOST_PAGED,
    MOST_SEARCHED,
    FactAdmin,
    column,
    pretty,
    runs_named,
    verdict,
)
from workflows_app.admin.filters import VerdictFilter, choices_in_words
from workflows_app.display import formats
from workflows_app.models import EventName, Run, RunEvent, RunNode, Source
from workflows_app.security import credentials

_SEARCH_RUN = "A run's id, #42, support-triage#42, or a workflow's slug."
_AMONG_NEWEST = f"Filters and names look at the newest {MOST_SEARCHED:,}."
_MOST_RUNS = 200  # whose nodes or events a search shows
SOURCES: dict[str, str] = {Source.API: "API"}
EVENTS: dict[str, str] = {
    **{event: event.replace("node", "block").replace("_", " ").capitalize() for event in EventName},
    EventName.NODE_EVAL_COMPLETE: "Block evaluated",
}


@admin.register(Run)
class RunAdmin(FactAdmin):
    """Runs, newest first."""

    list_display = ("__str__", "status", "came_from", "score", "verdict", "cost", "took", "created")
    list_filter = (
        "status",
        ("eval_passed", VerdictFilter),
        ("source", choices_in_words(Source, SOURCES)),
        "environment",
    )
    without_index = ("environment",)
    list_select_related = ("workflow", "version", "started_by")
    only_on_its_page = ("inputs", "outputs", "resolved", "error", "version__yaml")
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = (
        f"{_SEARCH_RUN} Or an external id. The environment is looked for in the newest {MOST_PAGED:,}."
    )
    fields = (
        "page", "workflow", "version", "number", "status", "came_from", "environment", "started_by", "external_id",
        "parent_run", "rerun_of", "created", "started_at", "finished_at", "took", "cost", "score", "verdict",
        "assertions_passed", "assertions_failed", "assertions_error", "regression_count", "nodes_done", "owner",
        "lease_expires_at", "takeovers", "shown_inputs", "shown_outputs", "shown_error",
    )  # fmt: skip

    came_from = column("source", "source", lambda source: SOURCES.get(source, Source(source).label))
    created = column("created_at", "created")
    score = column("eval_score", "score", formats.score)
    verdict = column("eval_passed", "verdict", verdict)
    cost = column("cost_usd", "cost", formats.cost)
    took = column("duration_ms", "duration", formats.duration)
    shown_inputs = pretty("inputs", read=credentials.shown_inputs)
    shown_outputs = pretty("outputs")
    shown_error = pretty("error")

    @admin.display(description="page")
    def page(self, run: Run) -> SafeString:
        return format_html('<a href="{}">{}, with its blocks</a>', run.get_absolute_url(), run)

    def view_on_site(self, obj: Run) -> str:
        return obj.get_absolute_url()

    def named(self, word: str) -> Q:
        return runs_named(word)

    def newest(self) -> Q:
        times = Run.objects.order_by("-created_at").values_list("created_at", flat=True)
        edge = times[MOST_PAGED : MOST_PAGED + 1].first()
        return Q(created_at__gt=edge) if edge else Q()


class PartOfRun(FactAdmin):
    """Many rows of each run: found by the run, or by their name among the newest."""

    list_select_related: ClassVar[tuple[str, ...]] = ("run__workflow",)
    ordering = ("-id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        newest, names, runs = self.newest(), Q(), Q()
        for word in search_term.split():
            named = Q(**{self.search_fields[0]: word})
            if self.model._default_manager.filter(newest, named).exists():
                names &= named
            else:
                found = Run.objects.filter(runs_named(word, _MOST_RUNS)).values_list("pk", flat=True)
                runs &= Q(run__in=list(found[:_MOST_RUNS]))
        return queryset.filter(names & (runs or newest)), False


@admin.register(RunNode)
class RunNodeAdmin(PartOfRun):
    """Executions of blocks, newest first."""

    list_display = ("block", "run", "block_type", "status", "score", "verdict", "cost", "took", "finished")
    list_filter = ("status", ("eval_passed", VerdictFilter))
    without_index = ("status", "eval_passed")
    only_on_its_page = (
        "output", "prompt", "error", "details", "eval_results", "delta", "tokens", "run__inputs", "run__outputs",
        "run__resolved", "run__error",
    )  # fmt: skip
    search_fields = ("node_id",)
    search_help_text = f"A block's id, or its run: {_SEARCH_RUN} {_AMONG_NEWEST}"
    fields = (
        "run", "block", "block_type", "iteration", "attempt", "status", "started_at", "finished", "took", "cost",
        "shown_tokens", "soul_id", "soul_version", "exit_handle", "child_run", "score", "verdict", "evaluated_at",
        "shown_results", "shown_delta", "shown_error", "shown_output", "shown_prompt", "shown_details",
    )  # fmt: skip

    block = column("node_id", "block")
    finished = column("finished_at", "finished")
    score = column("eval_score", "score", formats.score)
    verdict = column("eval_passed", "verdict", verdict)
    cost = column("cost_usd", "cost", formats.cost)
    took = column("latency_ms", "latency", formats.duration)
    shown_tokens = pretty("tokens")
    shown_results = pretty("eval_results")
    shown_delta = pretty("delta")
    shown_error = pretty("error")
    shown_output = pretty("output")
    shown_prompt = pretty("prompt")
    shown_details = pretty("details")


@admin.register(RunEvent)
class RunEventAdmin(PartOfRun):
    """The histories of runs, newest first."""

    list_display = ("what", "run", "number", "time")
    list_filter = (("event", choices_in_words(EventName, EVENTS)),)
    without_index = ("event",)
    only_on_its_page = ("data", "run__inputs", "run__outputs", "run__resolved", "run__error")
    search_fields = ("event",)
    search_help_text = (
        f"An event as the API names it, such as node_failed, or its run: {_SEARCH_RUN} {_AMONG_NEWEST}"
    )
    fields = ("run", "number", "what", "time", "shown_data")

    what = column("event", "event", lambda event: EVENTS.get(event, event))
    number = column("seq", "number")
    time = column("at", "time")
    shown_data = pretty("data")
