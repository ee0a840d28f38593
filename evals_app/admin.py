"""The admin of regressions, statistics, baselines and observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from evals_app.models import BlockStatistics, Observation, PinnedBaseline, Regression, RegressionKind
from evals_app.monitoring.regressions import KIND_WORDS, evidence_word
from evals_app.services import actions
from evals_app.services.observation import rebuild_statistics
from workflows_app.admin.facts import (
    MOST_SEARCHED,
    FactAdmin,
    ModelAdmin,
    ModelForm,
    column,
    may,
    pretty,
    verdict,
    who,
)
from workflows_app.admin.filters import VerdictFilter, choices_in_words
from workflows_app.display import formats
from workflows_app.models import Workflow
from workflows_app.services import Refused, audit

HANDLE = "evals_app.handle_regression"
PIN = "workflows_app.pin_baseline"


class BlockFacts(FactAdmin):
    """Facts about one block of a workflow."""

    list_select_related: ClassVar[tuple[str, ...]] = ("workflow",)
    search_fields = ("node_id",)
    search_help_text = "A workflow's slug or a block's id; each word narrows."

    def named(self, word: str) -> Q:
        return Q(node_id=word) | Q(workflow__slug__icontains=word)


@admin.register(Regression)
class RegressionAdmin(BlockFacts):
    """Lasting changes for the worse, and what people did about them."""

    list_display = ("what", "state", "strength", "since", "found")
    list_filter = ("state", ("kind", choices_in_words(RegressionKind, KIND_WORDS)))
    list_select_related = ("workflow", "acknowledged_by", "resolved_by")
    actions = ("acknowledge", "resolve")
    ordering = ("-found_at", "-id")
    fields = (
        "workflow", "block", "became_worse", "assertion", "state", "strength", "since_run", "since_run_number", "found_run",
        "found_run_number", "found", "shown_suspected", "shown_before", "shown_after", "acknowledged_by",
        "acknowledged_at", "resolved_by", "resolved_at",
    )  # fmt: skip

    block = column("node_id", "block")
    became_worse = column("kind", "kind", lambda kind: KIND_WORDS.get(kind, kind))
    found = column("found_at", "found")
    since = column(
        "since_run_number", "since run", lambda number: f"#{number}" if number else formats.MISSING
    )
    shown_suspected = pretty("suspected")
    shown_before = pretty("before")
    shown_after = pretty("after")

    @admin.display(description="regression")
    def what(self, row: Regression) -> str:
        """Block and kind: a block can have one of each, and of assertions several over time."""
        kind = KIND_WORDS[row.kind].lower()
        assertion = row.assertion.partition("#")[0]
        return f"{row.workflow.slug}/{row.node_id}: {kind}{f' of {assertion}' if assertion else ''}"

    @admin.display(description="evidence", ordering="evidence")
    def strength(self, row: Regression) -> SafeString:
        word = evidence_word(row.evidence).capitalize()
        return format_html('{} <span class="quiet">{}</span>', word, f"{row.evidence:.1f}")

    def has_handle_permission(self, request: HttpRequest) -> bool:
        return may(request, HANDLE)

    @admin.action(description="Acknowledge", permissions=["handle"])
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[Regression]) -> None:
        self._handle(request, queryset, actions.acknowledge_regression, "Acknowledged")

    @admin.action(description="Resolve", permissions=["handle"])
    def resolve(self, request: HttpRequest, queryset: QuerySet[Regression]) -> None:
        self._handle(request, queryset, actions.resolve_regression, "Resolved")

    def _handle(
        self, request: HttpRequest, queryset: QuerySet[Regression], act: Callable[..., Any], word: str
    ) -> None:
        done = 0
        for regression in queryset:
            try:
                act(regression, who(request))
                done += 1
            except Refused as refused:
                self.message_user(request, f"{self.what(regression)}: {refused.message}", messages.WARNING)
        if done:
            self.message_user(request, f"{word} {done} regression{'' if done == 1 else 's'}.")


@admin.register(BlockStatistics)
class BlockStatisticsAdmin(BlockFacts):
    """What is normal for each block."""

    list_display = ("__str__", "observed", "mean_score", "is_pinned", "updated")
    only_on_its_page = ("state", "slices", "verdicts")
    ordering = ("workflow__slug", "node_id")
    actions = ("rebuild",)
    fields = (
        "workflow", "block", "observed", "updated", "shown_baseline", "shown_pinned", "shown_verdicts",
        "shown_slices",
    )  # fmt: skip

    block = column("node_id", "block")
    observed = column("count", "observations")
    updated = column("updated_at", "updated")
    shown_baseline = pretty("baseline")
    shown_pinned = pretty("pinned")
    shown_verdicts = pretty("verdicts")
    shown_slices = pretty("slices")

    @admin.display(description="mean score")
    def mean_score(self, row: BlockStatistics) -> str:
        return formats.score(row.compared_with.get("score", {}).get("mean"))

    @admin.display(description="pinned", boolean=True)
    def is_pinned(self, row: BlockStatistics) -> bool:
        return row.pinned is not None

    def has_rebuild_permission(self, request: HttpRequest) -> bool:
        return may(request, PIN)

    @admin.action(
        description="Rebuild the workflow's statistics from its observations", permissions=["rebuild"]
    )
    def rebuild(self, request: HttpRequest, queryset: QuerySet[BlockStatistics]) -> None:
        for workflow in Workflow.objects.filter(pk__in=queryset.order_by().values("workflow")):
            read = rebuild_statistics(workflow)
            audit(who(request), "statistics.rebuild", workflow.slug, observations=read)
            self.message_user(request, f"Rebuilt {workflow.slug} from {read:,} observations.")


class PinForm(ModelForm):
    """One run or one version as what is normal."""

    class Meta:
        model = PinnedBaseline
        fields = ("workflow", "run", "version")
        help_texts: ClassVar = {
            "run": "The run to compare with, by its id or through the magnifier. Empty if you choose a version.",
            "version": "The version to compare with, by its id in the database. Empty if you choose a run. "
            "A workflow's page has a button for each.",
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        workflow, run, version = data.get("workflow"), data.get("run"), data.get("version")
        if bool(run) == bool(version):
            self.add_error(None, "Choose either a run or a version.")
        for name, chosen in (("run", run), ("version", version)):
            if chosen and workflow and chosen.workflow_id != workflow.pk:
                self.add_error(name, f"This belongs to {chosen.workflow.slug}, not to {workflow.slug}.")
        if workflow and not self.errors and (problem := actions.pin_problem(workflow, run, version)):
            self.add_error("run" if run else "version", problem)
        return data

    def _get_validation_exclusions(self) -> set[str]:
        # `clean` checks the same as the table's constraint, with a message that people understand.
        return {*super()._get_validation_exclusions(), "run", "version"}  # type: ignore[misc]  # Django's own hook


@admin.register(PinnedBaseline)
class PinnedBaselineAdmin(ModelAdmin):
    """Baselines chosen by people; deleting one goes back to the last hundred runs."""

    form = PinForm
    list_display = ("workflow", "run", "version", "pinned_by", "pinned_at")
    list_select_related = ("workflow", "run__workflow", "version__workflow", "pinned_by")
    raw_id_fields = ("workflow", "run", "version")
    search_fields = ("workflow__slug",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request, PIN)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may(request, PIN)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().add_view(request, form_url, extra_context)
        except Refused as refused:  # everything is rolled back by now
            self.message_user(request, refused.message, messages.ERROR)
            return redirect("admin:evals_app_pinnedbaseline_add")

    def save_model(self, request: HttpRequest, obj: PinnedBaseline, form: Any, change: bool) -> None:
        actions.pin_baseline(obj.workflow, run=obj.run, version=obj.version, user=who(request))
        obj.pk = PinnedBaseline.objects.values_list("pk", flat=True).get(workflow=obj.workflow)

    def delete_model(self, request: HttpRequest, obj: PinnedBaseline) -> None:
        actions.pin_baseline(obj.workflow, user=who(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[PinnedBaseline]) -> None:
        for row in queryset.select_related("workflow"):
            self.delete_model(request, row)


@admin.register(Observation)
class ObservationAdmin(BlockFacts):
    """One row for each block of a completed production run, newest first."""

    list_display = ("block", "run_number", "shown_score", "verdict", "cost", "took", "in_version", "time")
    list_filter = (("passed", VerdictFilter),)
    without_index = ("passed",)
    search_help_text = (
        f"{BlockFacts.search_help_text} Looks at the newest {MOST_SEARCHED:,}, as the filter does."
    )
    only_on_its_page = ("assertions", "named_scores")
    ordering = ("-id",)
    fields = (
        "workflow", "node_id", "number", "run", "run_number", "time", "shown_score", "verdict", "cost", "took", "tokens",
        "workflow_version", "soul_version", "shown_assertions", "shown_scores",
    )  # fmt: skip

    time = column("at", "time")
    shown_score = column("score", "score", formats.score)
    cost = column("cost_usd", "cost", formats.cost)
    took = column("latency_ms", "latency", formats.duration)
    in_version = column("workflow_version", "version", "v{}".format)
    verdict = column("passed", "verdict", verdict)
    shown_assertions = pretty("assertions")
    shown_scores = pretty("named_scores")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        rows = queryset.filter(self.newest()) if search_term else queryset
        return super().get_search_results(request, rows, search_term)

    @admin.display(description="block")
    def block(self, row: Observation) -> str:
        return f"{row.workflow.slug}/{row.node_id}"
