"""The list of workflows: which, in what state, and how they did lately, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils.safestring import SafeString

from evals_app.charts import sparkline
from evals_app.models import Regression, RegressionState
from workflows_app.display.querystring import PAGE_SIZE
from workflows_app.models import Environment, Run, RunStatus, Source, Workflow

LATELY = 20  # runs that a row's figures describe
STRETCH = 5  # runs behind one point of the sparkline
STATES = {"": "Any state", "regressed": "Regressed", "enabled": "Enabled", "disabled": "Disabled"}


class Badge(NamedTuple):
    """What a badge says and how it looks."""

    words: str
    icon: str
    css: str = ""


@dataclass
class WorkflowRow:
    """One workflow and how its last runs went."""

    workflow: Workflow
    regressions: int = 0  # that are not over, acknowledged or not
    open_regressions: int = 0  # that nobody has acknowledged
    last_run: Run | None = None
    verdicts: list[bool] = field(default_factory=list)  # oldest first
    costs: list[float] = field(default_factory=list)

    @property
    def pass_rate(self) -> float | None:
        return sum(self.verdicts) / len(self.verdicts) if self.verdicts else None

    @property
    def badge(self) -> Badge:
        """The one thing about it that a reader should know first."""
        if not self.workflow.enabled:
            return Badge("Disabled", "stop", "badge--outline")
        if self.open_regressions:
            return Badge("Regressed", "trend-down", "badge--bad")
        if self.regressions:
            return Badge("Regressed, acknowledged", "trend-down", "badge--warn")
        if not self.last_run:
            return Badge("Not run yet", "none")
        if self.last_run.status == RunStatus.FAILED:
            return Badge("Last run failed", "failed", "badge--bad")
        if not self.verdicts:
            return Badge("Not evaluated", "none")
        if not self.verdicts[-1]:  # one failure says nothing yet about a change
            return Badge("Last run did not pass", "failed", "badge--warn")
        return Badge("Fine", "passed", "badge--good")

    @property
    def cost_per_run(self) -> float | None:
        return sum(self.costs) / len(self.costs) if self.costs else None

    @property
    def sparkline(self) -> SafeString:
        tone = "bad" if self.regressions else "accent"
        return sparkline(_rates(self.verdicts), metric="pass_rate", tone=tone, width=96, height=28)


def _rates(verdicts: Sequence[bool]) -> list[float | None]:
    """The share passed among neighbours, at each run."""
    windows = (verdicts[max(0, index - STRETCH + 1) : index + 1] for index in range(len(verdicts)))
    return [sum(window) / len(window) for window in windows]


def find(search: str, state: str) -> QuerySet[Workflow]:
    """The workflows whose name or slug holds a text, in a state."""
    rows = Workflow.objects.for_list().defer("current_version__yaml")
    if search:
        rows = rows.called(search)
    if state == "regressed":
        rows = rows.filter(Exists(Regression.objects.unresolved().filter(workflow=OuterRef("pk"))))
    elif state in ("enabled", "disabled"):
        rows = rows.filter(enabled=state == "enabled")
    return rows


def page_of(workflows: QuerySet[Workflow], after: str = "") -> tuple[list[WorkflowRow], str]:
    """Up to `PAGE_SIZE` rows behind a slug, and the slug to go on from, if there are more."""
    if after:
        workflows = workflows.filter(slug__gt=after)
    found = list(workflows[: PAGE_SIZE + 1])
    rows = {workflow.pk: WorkflowRow(workflow) for workflow in found[:PAGE_SIZE]}
    _add_regressions(rows)
    _add_runs(rows)
    return list(rows.values()), found[PAGE_SIZE - 1].slug if len(found) > PAGE_SIZE else ""


def _add_regressions(rows: dict[int, WorkflowRow]) -> None:
    counts = (
        Regression.objects.unresolved()
        .filter(workflow__in=rows)
        .order_by()
        .values_list("workflow")
        .annotate(all=Count("pk"), open=Count("pk", filter=Q(state=RegressionState.OPEN)))
    )
    for workflow_id, count, still_open in counts:
        rows[workflow_id].regressions = count
        rows[workflow_id].open_regressions = still_open


def _add_runs(rows: dict[int, WorkflowRow]) -> None:
    """The last runs of each workflow: by number, so that the index finds them however many there are."""
    runs: Any = (
        Run.objects.filter(workflow__in=rows, number__gt=F("workflow__last_run_number") - LATELY)
        .only(
            "workflow_id",
            "number",
            "status",
            "created_at",
            "eval_passed",
            "cost_usd",
            "environment",
            "source",
        )
        .order_by("workflow_id", "number")
    )
    evaluated = set()
    for run in runs:
        row = rows[run.workflow_id]
        row.last_run = run
        if run.environment != Environment.PRODUCTION or run.source == Source.EVAL:
            continue
        if run.eval_passed is not None:
            evaluated.add(run.workflow_id)
        if run.has_passed is not None:
            row.verdicts.append(run.has_passed)
        if run.cost_usd is not None and run.status == RunStatus.COMPLETED:
            row.costs.append(run.cost_usd)
    for pk in rows.keys() - evaluated:
        rows[pk].verdicts.clear()  # without assertions only failures would count
