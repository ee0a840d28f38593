"""Results of eval suites over time: which workflows have one, how each case did, and what changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F, OuterRef, Q, Subquery

from evals_app.cases.compare import CaseVerdict
from evals_app.cases.results import PASSED
from evals_app.models import EvalCaseResult, EvalStatus, EvalSuiteRun
from workflows_app.engine.definition import EvalCase, EvalSuite
from workflows_app.models import Workflow

MARKS_SHOWN = 30


def cases_of(workflow: Workflow) -> tuple[EvalCase, ...]:
    """The cases of a workflow's current version."""
    suite = suite_of(workflow)
    return suite.cases if suite else ()


def suite_of(workflow: Workflow) -> EvalSuite | None:
    """The `eval:` section of a workflow's current version."""
    definition = workflow.readable_definition
    return definition.eval if definition else None


@dataclass(frozen=True)
class Mark:
    """One square of a strip: one result in one suite run."""

    suite_run: EvalSuiteRun
    status: str
    score: float | None
    result: EvalCaseResult | None = None


@dataclass(frozen=True)
class CaseHistory:
    """One case over time, oldest mark first; a suite run without the case has no mark."""

    case_id: str
    description: str
    is_current: bool  # whether the current version still has it
    marks: list[Mark] = field(default_factory=list)

    @property
    def latest(self) -> Mark | None:
        return self.marks[-1] if self.marks else None


@dataclass(frozen=True)
class SuiteOverview:
    """One workflow in the list of suites."""

    workflow: Workflow
    case_count: int
    latest: EvalSuiteRun | None
    marks: list[Mark]


def with_suites() -> list[Workflow]:
    """Every workflow that has cases or was evaluated, the one evaluated last first."""
    # Only a document that was never evaluated and contains the word has to be read.
    latest = EvalSuiteRun.objects.filter(workflow=OuterRef("pk")).order_by("-started_at").values("started_at")
    rows = Workflow.objects.for_list().annotate(evaluated_at=Subquery(latest[:1]))
    found = rows.filter(Q(evaluated_at__isnull=False) | Q(current_version__yaml__contains="eval"))
    ordered = found.order_by(F("evaluated_at").desc(nulls_last=True), "slug")
    return [one for one in ordered if one.evaluated_at or cases_of(one)]  # type: ignore[attr-defined]  # annotated


def overview(workflows: Collection[Workflow], limit: int = MARKS_SHOWN) -> list[SuiteOverview]:
    """How the suites of some workflows did; as many queries for one as for all."""
    runs: dict[int, list[EvalSuiteRun]] = {}
    for suite_run in EvalSuiteRun.objects.for_list().newest(limit, workflows):
        kept = runs.setdefault(suite_run.workflow_id, [])
        if len(kept) < limit:  # two may have begun at once
            kept.append(suite_run)
    return [
        SuiteOverview(
            workflow=workflow,
            case_count=len(cases_of(workflow)),
            latest=next(iter(runs.get(workflow.pk, ())), None),
            marks=[Mark(one, one.status, one.score) for one in reversed(runs.get(workflow.pk, []))],
        )
        for workflow in workflows
    ]


def case_histories(workflow: Workflow, limit: int = MARKS_SHOWN) -> list[CaseHistory]:
    """Each case's strip over the last suite runs: those of the current version in order, then those gone."""
    runs = list(EvalSuiteRun.objects.for_list().filter(workflow=workflow)[:limit])
    rows = EvalCaseResult.objects.filter(suite_run__in=runs).order_by("position").defer("details")
    by_run: dict[UUID, dict[str, EvalCaseResult]] = {one.pk: {} for one in runs}
    for row in rows:
        by_run[row.suite_run_id][row.case_id] = row
    current = {case.id: case for case in cases_of(workflow)}
    names = dict.fromkeys((*current, *(name for one in runs for name in by_run[one.pk])))
    return [
        CaseHistory(
            name,
            current[name].description if name in current else "",
            name in current,
            [
                Mark(one, result.status, result.score, result)
                for one in reversed(runs)
                if (result := by_run[one.pk].get(name))
            ],
        )
        for name in names
    ]


def previous_of(suite_run: EvalSuiteRun) -> EvalSuiteRun | None:
    """The suite run of the same workflow that finished before this one began."""
    earlier = EvalSuiteRun.objects.for_list().finished().filter(workflow_id=suite_run.workflow_id)
    return earlier.filter(started_at__lt=suite_run.started_at).exclude(pk=suite_run.pk).first()


def verdicts_of(suite_run: EvalSuiteRun) -> list[CaseVerdict]:
    """The results of a stored suite run, without the cases that were skipped."""
    rows = suite_run.results.exclude(status=EvalStatus.SKIPPED).values_list("case_id", "status", "score")
    return [CaseVerdict(case_id, status == PASSED, score) for case_id, status, score in rows]
