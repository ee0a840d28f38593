"""What edited assertions would have said about the outputs a block gave before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models.fields.json import KeyTransform

from evals_app.assertions import (
    AssertionContext,
    AssertionPlan,
    AssertionsResult,
    PassingRange,
    compile_assertions,
)
from workflows_app.models import NodeStatus, Run, RunNode, Source, Workflow

MOST_OUTPUTS = 10_000
DEFAULT_OUTPUTS = 1_000
MOST_FLIPS = 500
RUNS_AT_ONCE = 500
MOST_RUNS_SEEN = 50_000  # a block that hardly ever runs is not looked for in a million runs
MOST_SECONDS = 30.0  # patterns that always reach their time limit would take an hour
PROGRESS_EVERY = 250
PROGRESS_SECONDS = 0.5

_COLUMNS = ("pk", "run_id", "output", "eval_passed", "eval_score", "cost_usd", "latency_ms", "total",
            "soul_id", "soul_version", "prompt", "block_type")  # fmt: skip


@dataclass
class Side:
    """The verdicts before, or after."""

    passed: int = 0
    graded: int = 0
    total: float = 0.0

    def add(self, passed: bool, score: float | None) -> None:
        self.graded += 1
        self.passed += passed
        self.total += score or 0.0

    @property
    def mean_score(self) -> float | None:
        return self.total / self.graded if self.graded else None

    def to_dict(self) -> dict[str, Any]:
        return {"passed": self.passed, "mean_score": self.mean_score}


@dataclass
class Judged:
    """What one assertion said about every output so far."""

    type: str
    passing: PassingRange | None
    passed: int = 0
    errors: int = 0
    values: list[float] = field(default_factory=list)


@dataclass
class Backtest:
    """The answer, as it grows."""

    assertions: list[Judged]
    count: int = 0
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)
    flipped: list[dict[str, Any]] = field(default_factory=list)
    to_passed: int = 0
    to_failed: int = 0
    stopped: bool = False

    @property
    def flips(self) -> int:
        return self.to_passed + self.to_failed

    def add(self, node: int, run: str, was: bool | None, score: float | None, now: AssertionsResult) -> None:
        """Count one output, its verdict then and its verdict now."""
        self.count += 1
        passed = now.passed()
        if was is not None:
            self.before.add(was, score)
        self.after.add(passed, now.aggregate_score)
        if was is not None and was != passed:
            self.to_passed += passed
            self.to_failed += not passed
            if len(self.flipped) < MOST_FLIPS:
                self.flipped.append(
                    {"run": run, "node": node, "was": was, "now": passed, "reason": _reason(now, passed)}
                )
        for judged, result in zip(self.assertions, now.results, strict=True):
            judged.passed += result.passed
            judged.errors += result.error
            if result.measured is not None:
                judged.values.append(result.measured)

    def to_dict(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "flipped": self.flipped,
            "flipped_count": self.flips,
            "stopped": self.stopped,
            "measured": [{"type": one.type, "values": one.values} for one in self.assertions if one.values],
        }


def backtest(
    workflow: Workflow, block: str, assertions: list[dict[str, Any]], limit: int = DEFAULT_OUTPUTS
) -> Backtest:
    """Grade the last `limit` outputs of a block anew; nothing is stored."""
    *_, whole = backtest_in_steps(workflow, block, assertions, limit)
    return whole


def backtest_in_steps(
    workflow: Workflow, block: str, assertions: list[dict[str, Any]], limit: int = DEFAULT_OUTPUTS
) -> Iterator[Backtest]:
    """The same answer again and again, grown by a few hundred outputs each time; the last one is whole.

    What takes too long is stopped, and says so.
    """
    begun = told = time.monotonic()
    plan = compile_assertions(assertions)
    types = [str(one.get("type")) for one in assertions]
    found = Backtest([Judged(*pair) for pair in zip(types, plan.passing_ranges(), strict=True)])
    for row in outputs_of(workflow, block, min(limit, MOST_OUTPUTS)):
        found.add(row[0], str(row[1]), row[3], row[4], _grade(plan, workflow.slug, block, row))
        now = time.monotonic()
        if now - begun > MOST_SECONDS:
            found.stopped = True
            break
        if found.count % PROGRESS_EVERY == 0 or now - told > PROGRESS_SECONDS:
            told = now
            yield found
    yield found


def outputs_of(workflow: Workflow, block: str, limit: int) -> Iterator[tuple[Any, ...]]:
    """The newest finished outputs of a block, newest run first, found by index a few hundred runs at a time."""
    runs = Run.objects.filter(workflow=workflow).exclude(source=Source.EVAL).order_by("-created_at")
    nodes = RunNode.objects.filter(node_id=block, status=NodeStatus.COMPLETED).annotate(
        total=KeyTransform("total", "tokens")
    )
    given = start = 0
    while given < limit and start < MOST_RUNS_SEEN:
        page = list(runs.values_list("pk", flat=True)[start : start + RUNS_AT_ONCE])
        if not page:
            return
        start += len(page)
        by_run: dict[Any, list[tuple[Any, ...]]] = {}
        for row in nodes.filter(run_id__in=page).values_list(*_COLUMNS):
            by_run.setdefault(row[1], []).append(row)
        for run in page:
            for row in sorted(by_run.get(run, ()), reverse=True, key=_row_id):
                if given < limit:
                    given += 1
                    yield row


def _row_id(row: tuple[Any, ...]) -> int:
    return int(row[0])


def _grade(plan: AssertionPlan, slug: str, block: str, row: tuple[Any, ...]) -> AssertionsResult:
    _, run, output, _, _, cost, latency, tokens, soul, soul_version, prompt, block_type = row
    context = AssertionContext(
        output=output,
        prompt=prompt,
        soul_id=soul,
        soul_version=soul_version,
        block_id=block,
        block_type=block_type,
        cost_usd=cost,
        total_tokens=tokens,
        latency_ms=latency,
        run_id=str(run),
        workflow_id=slug,
    )
    return plan.run(context)


def _reason(result: AssertionsResult, passed: bool) -> str:
    """Why it is what it is now: the first that failed, or that nothing does any more."""
    if passed:
        return "Every assertion passes now."
    return next(one.reason for one in result.results if not one.passed)
