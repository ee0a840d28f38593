"""Observations, what is normal for a block, and the regressions found."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Case, F, OuterRef, Q, Subquery, Value, When
from django.utils import timezone

from workflows_app.models import Run, Workflow, WorkflowVersion, person_field


class ObservationQuerySet(models.QuerySet["Observation"]):
    """Reads of observations."""

    def newest(self, blocks: Iterable[BlockStatistics], most: int) -> Self:
        """The last of each block, found by their numbers, so that nothing older is read."""
        wanted = Q(pk__in=())
        for block in blocks:
            # The workflow in each: SQLite uses an index for each alternative only if it has all of it.
            wanted |= Q(workflow=block.workflow_id, node_id=block.node_id, number__gt=block.count - most)
        return self.filter(wanted)


class Observation(models.Model):
    """The result of one completed production run for one block; kept when its run is pruned."""

    # db_index=False: longer indexes begin with these two.
    workflow = models.ForeignKey(
        Workflow, on_delete=models.CASCADE, related_name="observations", db_index=False
    )
    node_id = models.CharField(max_length=200)
    number = models.PositiveIntegerField()
    run = models.ForeignKey(
        Run, null=True, on_delete=models.SET_NULL, related_name="observations", db_index=False
    )
    run_number = models.PositiveIntegerField()
    at = models.DateTimeField()
    score = models.FloatField(null=True)
    passed = models.BooleanField(null=True)
    cost_usd = models.FloatField(null=True)
    latency_ms = models.FloatField(null=True)
    tokens = models.PositiveBigIntegerField(null=True)
    workflow_version = models.PositiveIntegerField()
    soul_version = models.CharField(max_length=100, blank=True)
    assertions = models.JSONField(default=dict, help_text="Assertion key to whether it passed.")
    named_scores = models.JSONField(default=dict)

    objects = ObservationQuerySet.as_manager()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("run", "node_id"), name="observation_of_run_once"),
            models.UniqueConstraint(fields=("workflow", "node_id", "number"), name="observation_number_once"),
        )
        indexes = (
            models.Index(fields=("workflow", "node_id", "at"), name="observation_by_time"),
            # The newest runs of every block, read without the blocks' names.
            models.Index(fields=("workflow", "run_number"), name="observation_by_run"),
        )

    def __str__(self) -> str:
        return f"{self.node_id} {self.number}"


class BlockStatistics(models.Model):
    """Constant-size state of one block, so that finding its baseline costs the same whatever is stored."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="block_statistics")
    node_id = models.CharField(max_length=200)
    count = models.PositiveIntegerField(default=0)
    baseline = models.JSONField(
        default=dict, help_text="Count, mean, low and high by metric: what nodes compare with."
    )
    pinned = models.JSONField(null=True, help_text="A baseline chosen by a person, used instead.")
    verdicts = models.JSONField(
        default=dict, help_text="Better, worse, no evidence of change, too few runs; by metric."
    )
    slices = models.JSONField(
        default=dict, help_text="Running totals by workflow version, soul version and assertion."
    )
    state = models.JSONField(default=dict, help_text="The sequential tests.")
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "block statistics"
        constraints = (
            models.UniqueConstraint(fields=("workflow", "node_id"), name="statistics_of_block_once"),
        )

    def __str__(self) -> str:
        return f"{self.workflow.slug}/{self.node_id}"

    @property
    def compared_with(self) -> dict[str, Any]:
        """The baseline in force, by metric: the pinned one where there is one, else that of the last runs."""
        found: dict[str, Any] = self.pinned or self.baseline
        return found


class PinnedBaseline(models.Model):
    """A run or version chosen by a person as what is normal, instead of the last hundred."""

    workflow = models.OneToOneField(Workflow, on_delete=models.CASCADE, related_name="pinned_baseline")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(
        WorkflowVersion, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    pinned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    pinned_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(run__isnull=True) ^ Q(version__isnull=True), name="pinned_to_run_or_version"
            ),
        )

    def __str__(self) -> str:
        return f"{self.workflow.slug}"


class RegressionKind(models.TextChoices):
    """What became worse."""

    ASSERTION = "assertion_regression"
    QUALITY = "quality_drop"
    COST = "cost_spike"
    LATENCY = "latency_spike"


QUALITY_KINDS = frozenset({RegressionKind.ASSERTION, RegressionKind.QUALITY})


class RegressionState(models.TextChoices):
    """Where a regression stands."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class RegressionQuerySet(models.QuerySet["Regression"]):
    """Reads of regressions."""

    def unresolved(self) -> Self:
        # By the states it may have: the index begins with the state.
        return self.filter(state__in=(RegressionState.OPEN, RegressionState.ACKNOWLEDGED))

    def by_urgency(self) -> Self:
        """What nobody has acknowledged and then what somebody has, each by evidence; what is over, the newest first."""
        ranks = enumerate((RegressionState.OPEN, RegressionState.ACKNOWLEDGED))
        rank = Case(*(When(state=state, then=Value(place)) for place, state in ranks), default=Value(2))
        evidence = Case(When(state=RegressionState.RESOLVED, then=Value(0.0)), default=F("evidence"))
        return self.order_by(rank, evidence.desc(), "-found_at", "-id")


class Regression(models.Model):
    """A lasting change for the worse of one block, with its evidence."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="regressions")
    node_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=30, choices=RegressionKind)
    assertion = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=15, choices=RegressionState, default=RegressionState.OPEN)
    since_number = models.PositiveIntegerField(help_text="Observation number at which it began, estimated.")
    since_run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")
    since_run_number = models.PositiveIntegerField(null=True)
    found_run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="regressions_found")
    found_run_number = models.PositiveIntegerField(null=True)
    suspected = models.JSONField(null=True, help_text="workflow_version and soul_version, where one changed.")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    evidence = models.FloatField(default=0.0)
    found_at = models.DateTimeField(default=timezone.now)
    acknowledged_by = person_field()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    resolved_by = person_field()
    resolved_at = models.DateTimeField(null=True, blank=True)

    objects = RegressionQuerySet.as_manager()

    class Meta:
        ordering = ("-found_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("workflow", "node_id", "kind"),
                name="regression_open_once",
                condition=~Q(state="resolved"),
            ),
        )
        indexes = (
            models.Index(fields=("state", "-evidence"), name="regression_by_evidence"),
            models.Index(fields=("-found_at", "-id"), name="regression_newest"),
        )
        permissions = (("handle_regression", "Can acknowledge and resolve regressions"),)

    def __str__(self) -> str:
        return f"{self.node_id} {self.kind}"


class EvalStatus(models.TextChoices):
    """How a suite or a case ended: `error` could not be tried, `skipped` was not."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class EvalSuiteRunQuerySet(models.QuerySet["EvalSuiteRun"]):
    """Reads of suite runs."""

    def for_list(self) -> Self:
        """With what every list prints, newest first."""
        return (
            self.select_related("workflow", "version", "started_by")
            .defer("version__yaml")
            .order_by("-started_at", "-id")
        )

    def finished(self) -> Self:
        return self.exclude(finished_at=None)

    def newest(self, most: int, workflows: Collection[Workflow]) -> Self:
        """The last of each of some workflows, found by their times, so that nothing older is read."""
        own = EvalSuiteRun.objects.filter(workflow=OuterRef("pk")).order_by("-started_at")
        oldest = Subquery(own.values("started_at")[most - 1 : most])  # none where there are fewer
        found = Workflow.objects.filter(pk__in=[one.pk for one in workflows]).order_by()
        wanted = Q(pk__in=())
        for pk, since in found.values_list("pk", oldest):
            wanted |= Q(workflow=pk) if since is None else Q(workflow=pk, started_at__gte=since)
        return self.filter(wanted)


class EvalSuiteRun(models.Model):
    """One evaluation of all eval cases of one workflow version."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="eval_suite_runs")
    version = models.ForeignKey(WorkflowVersion, on_delete=models.CASCADE, related_name="eval_suite_runs")
    status = models.CharField(max_length=10, choices=EvalStatus, default=EvalStatus.RUNNING)
    score = models.FloatField(null=True)
    threshold = models.FloatField(default=1.0)
    reason = models.TextField(blank=True)
    cost_usd = models.FloatField(null=True, help_text="Null while it runs, and where a price is unknown.")
    cases_total = models.PositiveIntegerField(default=0)
    cases_done = models.PositiveIntegerField(default=0)
    cases_passed = models.PositiveIntegerField(default=0)
    origin = models.CharField(max_length=20, default="web", help_text="web, api or cli.")
    started_by = person_field()
    started_at = models.DateTimeField(default=timezone.now)
    begun_at = models.DateTimeField(null=True, help_text="When a process took it; no other may then.")
    alive_at = models.DateTimeField(default=timezone.now, help_text="When it was last heard of.")
    finished_at = models.DateTimeField(null=True)

    objects = EvalSuiteRunQuerySet.as_manager()

    class Meta:
        ordering = ("-started_at",)
        indexes = (
            models.Index(fields=("workflow", "-started_at"), name="suite_run_newest"),
            models.Index(fields=("alive_at",), name="suite_run_open", condition=Q(finished_at=None)),
        )

    def __str__(self) -> str:
        return f"{self.workflow.slug} {self.started_at:%Y-%m-%d %H:%M}"

    def get_absolute_url(self) -> str:
        return f"/evals/runs/{self.id}/"

    @property
    def origin_words(self) -> str:
        return {"web": "This site", "api": "API", "cli": "Command line"}.get(self.origin, self.origin)


class EvalCaseResult(models.Model):
    """The result of one case in one evaluation."""

    suite_run = models.ForeignKey(EvalSuiteRun, on_delete=models.CASCADE, related_name="results")
    case_id = models.CharField(max_length=100)
    position = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=EvalStatus)
    score = models.FloatField()
    cost_usd = models.FloatField(null=True)
    details: models.JSONField[Any, Any] = models.JSONField(
        default=dict, help_text="The case as `runsight evaluate --json` prints it."
    )
    run = models.ForeignKey(
        Run,
        null=True,
        on_delete=models.SET_NULL,
        related_name="eval_results_of_cases",
        help_text="The run that shows why, where something was executed.",
    )

    class Meta:
        ordering = ("position",)
        constraints = (models.UniqueConstraint(fields=("suite_run", "case_id"), name="case_result_once"),)

    def __str__(self) -> str:
        return f"{self.case_id} {self.status}"
