"""What the assertion lab shows: a text judged by assertions as they are typed, and what they would have said before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from django.utils.safestring import SafeString

from evals_app import charts
from evals_app.assertions import (
    AssertionContext,
    AssertionsResult,
    PassingRange,
    assertion_types,
    run_assertions_sync,
)
from evals_app.backtest import DEFAULT_OUTPUTS, MOST_OUTPUTS, Backtest, Judged, outputs_of
from evals_app.blocks import asks
from evals_app.written import assertion_faults, read_assertions, write_assertions
from workflows_app import formats
from workflows_app.engine.definition import BaseBlockDef, Fault, InvalidDocument
from workflows_app.models import Run, RunNode, Workflow, WorkflowVersion

FAMILIES = {
    "text": "Text",
    "structure": "Structure",
    "similarity": "Similarity",
    "measures": "Cost and time",
}
LIMITS = (100, DEFAULT_OUTPUTS, MOST_OUTPUTS)
LONG = 50_000  # letters, as in static/js/lab.js
MOST_FLIPS_SHOWN = 100
FLIPS_AT_FIRST = 10
#: How each measured number is printed; words and characters are counts.
METRICS = {"cost": "cost", "latency": "latency", "score": "score"}

SAMPLE_OUTPUT = """\
{"supplier": "Northwind Traders", "total": 1240.5, "currency": "EUR", "lines": [
  {"item": "Paper, A4", "amount": 40.5},
  {"item": "Printer", "amount": 1200}
]}
"""
SAMPLE_ASSERTIONS = """\
- type: is-json
  value: {required: [supplier, total, due_date]}
- type: contains
  value: Northwind
- type: regex
  transform: "json_path:$.currency"
  value: "^[A-Z]{3}$"
- type: word-count
  value: {max: 200}
- type: cost
  threshold: 0.01
"""


@dataclass
class Trial:
    """Everything the lab's form holds, as text, so that nothing typed is ever lost."""

    output: str = SAMPLE_OUTPUT
    assertions: str = SAMPLE_ASSERTIONS
    cost_usd: str = "0.004"
    latency_ms: str = "850"
    workflow: str = ""
    block: str = ""
    limit: int = DEFAULT_OUTPUTS
    number_faults: dict[str, str] = field(default_factory=dict)

    @property
    def direction(self) -> str:
        """The text's: of a long one a browser takes seconds to find it, each time it lays it out."""
        return "ltr" if len(self.output) > LONG else "auto"

    @classmethod
    def typed(cls, form: Mapping[str, str]) -> Trial:
        """What was sent."""
        limit = form.get("limit", "")
        wanted = next((known for known in LIMITS if str(known) == limit), DEFAULT_OUTPUTS)

        def text(name: str) -> str:
            return form.get(name, "").replace("\r\n", "\n")  # as browsers send line ends

        def name(field_name: str) -> str:
            return form.get(field_name, "").replace("\0", "")

        return cls(
            output=text("output"),
            assertions=text("assertions"),
            cost_usd=form.get("cost_usd", "").strip(),
            latency_ms=form.get("latency_ms", "").strip(),
            workflow=name("workflow"),
            block=name("block"),
            limit=wanted,
        )

    @cached_property
    def faults(self) -> list[Fault]:
        return assertion_faults(self.assertions)

    @cached_property
    def configs(self) -> list[dict[str, Any]]:
        return read_assertions(self.assertions)[0]

    @cached_property
    def result(self) -> AssertionsResult:
        """What the assertions say about the text."""
        context = AssertionContext(
            output=self.output, cost_usd=self._number("cost_usd"), latency_ms=self._number("latency_ms")
        )
        return run_assertions_sync(self.configs, context)

    @property
    def verdict(self) -> str:
        """What the results come to; what the YAML's faults leave out was not checked."""
        results = self.result.results
        has_failed = any(not (one.passed or one.error) for one in results)
        return formats.verdict_of(self.result.passed() and not self.faults, has_failed=has_failed)

    def _number(self, name: str) -> float | None:
        text: str = getattr(self, name)
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            self.number_faults[name] = f"“{text[:40]}” is not a number of 0 or more."
            return None
        return number

    def start_from(self, workflow: Workflow, block: str) -> None:
        """Take over a block's assertions and its newest output."""
        found = blocks_of(workflow.current_version).get(block)
        self.workflow, self.block = workflow.slug, block
        self.assertions = write_assertions(found.assertions if found else None)
        newest = next(outputs_of(workflow, block, 1), None)
        if newest is not None:
            self._take(newest[2], newest[5], newest[6])
        else:
            self._take("", None, None)

    def start_from_node(self, node: RunNode) -> None:
        """Take over a node's output and the assertions it was judged by."""
        block = blocks_of(node.run.version).get(node.node_id)
        self.workflow, self.block = node.run.workflow.slug, node.node_id
        self.assertions = write_assertions(block.assertions if block else None)
        self._take(node.output, node.cost_usd, node.latency_ms)

    def _take(self, output: str, cost_usd: float | None, latency_ms: float | None) -> None:
        self.output = output
        self.cost_usd = "" if cost_usd is None else f"{cost_usd:.10g}"
        self.latency_ms = "" if latency_ms is None else f"{latency_ms:.10g}"


def blocks_of(version: WorkflowVersion | None) -> Mapping[str, BaseBlockDef]:
    """The blocks of a version; none where it was saved under older rules and is not valid any more."""
    try:
        return version.definition.blocks if version else {}
    except InvalidDocument:
        return {}


def catalogue() -> list[tuple[str, list[dict[str, Any]]]]:
    """Every assertion type with its documentation, by family."""
    grouped = groupby(assertion_types(), key=lambda one: str(one["family"]))
    return [(FAMILIES.get(family, family.capitalize()), list(types)) for family, types in grouped]


@dataclass(frozen=True)
class Distribution:
    """One assertion over all outputs."""

    type: str
    asks: str
    passed: int
    failed: int
    errors: int
    unmeasured: int
    chart: SafeString | None


@dataclass(frozen=True)
class Flip:
    """One output whose verdict would have been another."""

    run: str
    number: int
    at: Any
    node: int
    was: bool
    now: bool
    reason: str


@dataclass(frozen=True)
class BacktestReport:
    """A finished backtest as the page prints it."""

    found: Backtest
    workflow: Workflow
    block: str
    flips: list[Flip]
    distributions: list[Distribution]

    @property
    def sentence(self) -> str:
        found = self.found
        outputs = f"{found.count:,} output{'' if found.count == 1 else 's'}"
        if not found.before.graded:
            return f"{found.after.passed:,} of {outputs} would have passed; none had a verdict before."
        if not found.flips:
            return f"No verdict would change: these assertions agree with what was said about {outputs}."
        ways = [
            f"{count:,} from {words}"
            for count, words in (
                (found.to_failed, "passed to failed"),
                (found.to_passed, "failed to passed"),
            )
            if count
        ]
        verdicts = "verdict" if found.flips == 1 else "verdicts"
        return f"Of {outputs}, {found.flips:,} {verdicts} would flip: {' and '.join(ways)}."

    @property
    def rate_before(self) -> float | None:
        return self.found.before.passed / self.found.before.graded if self.found.before.graded else None

    @property
    def rate_after(self) -> float | None:
        return self.found.after.passed / self.found.after.graded if self.found.after.graded else None

    @property
    def rate_change(self) -> float | None:
        before, after = self.rate_before, self.rate_after
        return None if before is None or after is None else after - before

    @property
    def score_change(self) -> float | None:
        before, after = self.found.before.mean_score, self.found.after.mean_score
        return None if before is None or after is None else after - before

    @property
    def first_flips(self) -> list[Flip]:
        return self.flips[:FLIPS_AT_FIRST]

    @property
    def more_flips(self) -> list[Flip]:
        return self.flips[FLIPS_AT_FIRST:]

    @property
    def flips_left_out(self) -> int:
        return self.found.flips - len(self.flips)


def report(
    found: Backtest, workflow: Workflow, block: str, configs: Sequence[Mapping[str, Any]]
) -> BacktestReport:
    """A backtest with its runs' numbers and its charts; one query, whatever its size."""
    shown = found.flipped[:MOST_FLIPS_SHOWN]
    runs = Run.objects.only("number", "created_at").in_bulk([flip["run"] for flip in shown]) if shown else {}
    by_id = {str(pk): run for pk, run in runs.items()}
    flips = [
        Flip(number=by_id[flip["run"]].number, at=by_id[flip["run"]].created_at, **flip)
        for flip in shown
        if flip["run"] in by_id
    ]
    distributions = [
        _distribution(judged, asks(config), found.count)
        for judged, config in zip(found.assertions, configs, strict=True)
    ]
    return BacktestReport(found, workflow, block, flips, distributions)


def _distribution(judged: Judged, asked: str, count: int) -> Distribution:
    failed = count - judged.passed - judged.errors
    chart = None
    if judged.passing is not None and judged.values:
        chart = _chart(judged.values, judged.passing)
    unmeasured = count - judged.errors - len(judged.values) if chart is not None else 0
    return Distribution(judged.type, asked, judged.passed, failed, judged.errors, unmeasured, chart)


def _chart(values: list[float], passing: PassingRange) -> SafeString:
    metric = METRICS.get(passing.measures, "tokens")
    if passing.low is not None and passing.high is not None:
        return charts.histogram(
            values, passing.low, upper=passing.high, metric=metric, passes_above=not passing.negated
        )
    threshold = passing.high if passing.low is None else passing.low
    above = (passing.low is not None) != passing.negated
    return charts.histogram(values, threshold, metric=metric, passes_above=above)
