"""What the assertion lab shows: a text checked by assertions as they are typed, and what they would have said before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from evals_app import charts
from evals_app.assertion_words import asks
from evals_app.assertion_yaml import read_assertions, write_assertions
from evals_app.assertions import (
    AssertionContext,
    AssertionsResult,
    assertion_types,
    run_assertions_sync,
)
from evals_app.monitoring.backtest import (
    DEFAULT_OUTPUTS,
    MOST_OUTPUTS,
    AssertionTotals,
    Backtest,
    Flip,
    outputs_of,
)
from evals_app.pages.run.inspector import shown_assertion
from workflows_app.display import formats
from workflows_app.engine.definition import BaseBlockDef, Fault
from workflows_app.models import Run, RunNode, Workflow, WorkflowVersion

FAMILIES = {"measures": "Cost and time"}  # the others are called as they are
LIMITS = (100, DEFAULT_OUTPUTS, MOST_OUTPUTS)
LONG = 50_000  # letters, as in static/js/lab.js
MOST_FLIPS_SHOWN = 100

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
    def _read(self) -> tuple[list[dict[str, Any]], list[Fault]]:
        return read_assertions(self.assertions)

    @property
    def configs(self) -> list[dict[str, Any]]:
        return self._read[0]

    @property
    def faults(self) -> list[Fault]:
        return self._read[1]

    @cached_property
    def result(self) -> AssertionsResult:
        """What the assertions say about the text."""
        context = AssertionContext(
            self.output, cost_usd=self._number("cost_usd"), latency_ms=self._number("latency_ms")
        )
        return run_assertions_sync(self.configs, context)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each result beside its assertion; none where there is nothing to check by."""
        results = self.result.results if self.configs else []
        return [
            shown_assertion(one.to_dict(), config) for one, config in zip(results, self.configs, strict=True)
        ]

    @property
    def verdict(self) -> str:
        """The verdict on all results; what has an error in the YAML was not checked."""
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

    def start_from(self, workflow: Workflow, block: str, node: RunNode | None = None) -> None:
        """Take over a node's output and the assertions it was checked by; without one, the block's newest."""
        version = node.run.version if node else workflow.current_version
        node = node or next(outputs_of(workflow, block, 1), None)
        found = blocks_of(version).get(block)
        self.workflow, self.block = workflow.slug, block
        self.assertions = write_assertions(found.assertions if found else None)
        self.output = node.output if node else ""
        self.cost_usd = "" if node is None or node.cost_usd is None else f"{node.cost_usd:.10g}"
        self.latency_ms = "" if node is None or node.latency_ms is None else f"{node.latency_ms:.10g}"


def blocks_of(version: WorkflowVersion | None) -> Mapping[str, BaseBlockDef]:
    """The blocks of a version; none where it was saved under older rules and is not valid any more."""
    definition = version.readable_definition if version else None
    return definition.blocks if definition else {}


def catalogue() -> list[tuple[str, list[dict[str, Any]]]]:
    """Every assertion type with its documentation, by family."""
    grouped = groupby(assertion_types(), key=lambda one: str(one["family"]))
    return [(FAMILIES.get(family, family.capitalize()), list(types)) for family, types in grouped]


@dataclass(frozen=True)
class BacktestReport:
    """A finished backtest as the page prints it."""

    found: Backtest
    workflow: Workflow
    block: str
    flips: list[tuple[Flip, Run]]
    distributions: list[dict[str, Any]]

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
    def tone(self) -> str:
        """How the note about it looks; nothing for a plain one."""
        if self.found.flips:
            return "bad" if self.found.to_failed else "warn"
        return "good" if self.found.before.graded else ""

    @property
    def icon(self) -> str:
        return {"bad": "warning", "warn": "warning", "good": "passed"}.get(self.tone, "info")

    @property
    def rate_change(self) -> float | None:
        return _difference(self.found.before.pass_rate, self.found.after.pass_rate)

    @property
    def score_change(self) -> float | None:
        return _difference(self.found.before.mean_score, self.found.after.mean_score)

    @property
    def flips_left_out(self) -> int:
        return self.found.flips - len(self.flips)


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def report(
    found: Backtest, workflow: Workflow, block: str, configs: Sequence[Mapping[str, Any]]
) -> BacktestReport:
    """A backtest with its runs' numbers and its charts; one query, whatever its size."""
    shown = found.flipped[:MOST_FLIPS_SHOWN]
    runs = Run.objects.only("number", "created_at").in_bulk([flip.run for flip in shown]) if shown else {}
    flips = [(flip, runs[flip.run]) for flip in shown if flip.run in runs]
    distributions = [
        _distribution(totals, config, found.count)
        for totals, config in zip(found.assertions, configs, strict=True)
    ]
    return BacktestReport(found, workflow, block, flips, distributions)


def _distribution(totals: AssertionTotals, config: Mapping[str, Any], count: int) -> dict[str, Any]:
    """One assertion over all outputs."""
    chart = None
    if totals.passing is not None and totals.values:
        measures = totals.passing.measures
        metric = measures if measures in formats.METRICS else "tokens"  # words and characters are counts, too
        chart = charts.histogram(totals.values, totals.passing, metric=metric)
    return {
        "type": totals.type,
        "asks": asks(config),
        "passed": totals.passed,
        "failed": count - totals.passed - totals.errors,
        "errors": totals.errors,
        "unmeasured": count - totals.errors - len(totals.values) if chart is not None else 0,
        "chart": chart,
    }
