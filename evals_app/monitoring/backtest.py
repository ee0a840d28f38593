"""The results that edited assertions would have had for a block's earlier outputs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from evals_app.assertions import AssertionsResult, PassingRange, compile_assertions
from evals_app.block_assertions import context_for_node
from workflows_app.models import NodeStatus, Run, RunNode, Source, Workflow

MOST_OUTPUTS = 10_000
DEFAULT_OUTPUTS = 1_000
MOST_FLIPS = 500
RUNS_AT_ONCE = 500
MOST_RUNS_SEEN = 50_000  # a block that hardly ever runs is not looked for in a million runs
MOST_SECONDS = 30.0  # patterns that always reach their time limit would take an hour
PROGRESS_EVERY = 250
PROGRESS_SECONDS = 0.5

_COLUMNS = ("run_id", "node_id", "output", "eval_passed", "eval_score", "cost_usd", "latency_ms", "tokens",
            "soul_id", "soul_version", "prompt", "prompt_hash", "block_type", "run__inputs")  # fmt: skip


@dataclass
class BacktestSide:
    """The verdicts before, or after."""

    passed: int = 0
    graded: int = 0
    total: float = 0.0

    def add(self, passed: bool, score: float | None) -> None:
        self.graded += 1
        self.passed += passed
        self.total += score or 0.0

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.graded if self.graded else None

    @property
    def mean_score(self) -> float | None:
        return self.total / self.graded if self.graded else None


@dataclass
class AssertionTotals:
    """The results of one assertion over every output so far."""

    type: str
    passing: PassingRange | None
    passed: int = 0
    errors: int = 0
    values: list[float] = field(default_factory=list)


class Flip(NamedTuple):
    """An output whose verdict would have been another."""

    run: UUID
    node: int
    was: bool
    now: bool
    reason: str


@dataclass
class Backtest:
    """The answer, as it grows."""

    assertions: list[AssertionTotals]
    count: int = 0
    before: BacktestSide = field(default_factory=BacktestSide)
    after: BacktestSide = field(default_factory=BacktestSide)
    flipped: list[Flip] = field(default_factory=list)
    to_passed: int = 0
    to_failed: int = 0
    stopped: bool = False

    @property
    def measured(self) -> list[AssertionTotals]:
        return [one for one in self.assertions if one.values]

    @property
    def flips(self) -> int:
        return self.to_passed + self.to_failed

    def add(self, node: RunNode, now: AssertionsResult) -> None:
        """Count one output, its verdict then and its verdict now."""
        was = node.eval_passed
        self.count += 1
        passed = now.passed()
        if was is not None:
            self.before.add(was, node.eval_score)
        self.after.add(passed, now.aggregate_score)
        if was is not None and was != passed:
            self.to_passed += passed
            self.to_failed += not passed
            if len(self.flipped) < MOST_FLIPS:
                self.flipped.append(Flip(node.run_id, node.pk, was, passed, _reason(now, passed)))
        for totals, result in zip(self.assertions, now.results, strict=True):
            totals.passed += result.passed
            totals.errors += result.error
            if result.measured is not None:
                totals.values.append(result.measured)


def backtest(
    workflow: Workflow, block: str, assertions: list[dict[str, Any]], limit: int = DEFAULT_OUTPUTS
) -> Backtest:
    """Grade the last `limit` outputs of a block again; nothing is stored."""
    *_, whole = backtest_in_steps(workflow, block, assertions, limit)
    return whole


def backtest_in_steps(
    workflow: Workflow, block: str, assertions: list[dict[str, Any]], limit: int = DEFAULT_OUTPUTS
) -> Iterator[Backtest]:
    """The same answer again and again, grown by a few hundred outputs each time; the last one is whole.

    One that takes too long ends early with `stopped`.
    """
    begun = reported = time.monotonic()
    plan = compile_assertions(assertions)
    types = [str(one.get("type")) for one in assertions]
    found = Backtest([AssertionTotals(*pair) for pair in zip(types, plan.passing_ranges(), strict=True)])
    for node in outputs_of(workflow, block, min(limit, MOST_OUTPUTS)):
        found.add(node, plan.run(context_for_node(node)))
        now = time.monotonic()
        if now - begun > MOST_SECONDS:
            found.stopped = True
            break
        if found.count % PROGRESS_EVERY == 0 or now - reported > PROGRESS_SECONDS:
            reported = now
            yield found
    yield found


def outputs_of(workflow: Workflow, block: str, limit: int) -> Iterator[RunNode]:
    """The newest finished outputs of a block, newest run first, found by index a few hundred runs at a time."""
    runs = Run.objects.filter(workflow=workflow).exclude(source=Source.EVAL).order_by("-created_at")
    nodes = RunNode.objects.filter(node_id=block, status=NodeStatus.COMPLETED)
    nodes = nodes.select_related("run").only(*_COLUMNS)
    count = start = 0
    while count < limit and start < MOST_RUNS_SEEN:
        page = list(runs.values_list("pk", flat=True)[start : start + RUNS_AT_ONCE])
        if not page:
            return
        start += len(page)
        by_run: dict[UUID, list[RunNode]] = {}
        for node in nodes.filter(run_id__in=page):
            node.run.workflow = workflow
            by_run.setdefault(node.run_id, []).append(node)
        for run in page:
            for node in sorted(by_run.get(run, ()), reverse=True, key=lambda node: int(node.pk)):
                if count < limit:
                    count += 1
                    yield node


def _reason(result: AssertionsResult, passed: bool) -> str:
    """Why it is what it is now: the first that failed, or that nothing does any more."""
    if passed:
        return "Every assertion passes now."
    return next(one.reason for one in result.results if not one.passed)
