"""Everything one node's inspector shows: output, assertions, how it differs from what is usual."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils import timezone
from django.utils.safestring import SafeString

from evals_app import charts
from evals_app.models import Observation
from evals_app.outputs import NamedOutput, Output, Room, read_output, read_text, read_values
from evals_app.plans import keys_for
from workflows_app import formats
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.given import given_to
from workflows_app.models import Run, RunNode, SoulVersion
from workflows_app.weight import beginning, html_bytes

HISTORY = 50
LONGEST_VALUE = 160
AT_MOST = frozenset({"cost", "latency", "levenshtein"})
AT_LEAST = frozenset({"bleu", "rouge-n"})
IN_UNITS = {
    "cost": formats.cost,
    "latency": formats.duration,
    "bleu": formats.score,
    "rouge-n": formats.score,
}


@dataclass(frozen=True)
class Assertion:
    """One grading result beside what was asked."""

    type: str
    word: str  # passed, failed, error
    reason: str
    score: float
    weight: str
    expected: str
    full_value: str
    is_cut: bool  # that value
    measured: str
    transform: str
    metric: str
    fact: str


@dataclass(frozen=True)
class Compared:
    """One figure of a node beside what is usual."""

    label: str
    metric: str  # as `formats.metric` knows it
    value: float
    change: float | None
    change_metric: str
    usual: float | None
    low: float | None
    high: float | None
    history: SafeString
    runs: int | None  # that usual comes from, where they are fewer than for another figure


@dataclass(frozen=True)
class Space:
    """How much of a node a page shows; everything else has its own address."""

    output: Room
    text: int  # bytes of the prompt, of what code printed
    given: int  # bytes of its inputs
    value: int  # bytes of an expected value that is too long for its line
    assertions: int
    executions: int


BESIDE = Space(
    Room(text=5_000, rendered=12_000), text=2_000, given=1_500, value=0, assertions=6, executions=8
)
ALONE = Space(
    Room(text=20_000, rendered=40_000), text=6_000, given=8_000, value=800, assertions=15, executions=16
)


class Inspector:
    """One node of a run, beside the others or alone on its page; its queries do not grow with anything."""

    def __init__(self, run: Run, node: RunNode, space: Space = BESIDE, assertions_page: int = 1) -> None:
        self.run = run
        self.node = node
        self.space = space
        self.assertions_page = assertions_page
        self.definition = run.version.readable_definition
        blocks = self.definition.blocks if self.definition else {}
        self.block: BaseBlockDef | None = blocks.get(node.node_id)

    @cached_property
    def _executions(self) -> list[RunNode]:
        """Every round and attempt of this block in the run."""
        rows = self.run.nodes.filter(node_id=self.node.node_id)
        fields = ("run_id", "node_id", "iteration", "attempt", "status", "eval_passed", "eval_results")
        return list(rows.only(*fields).order_by("iteration", "attempt"))

    @cached_property
    def executions(self) -> Page[RunNode]:
        """Those around the one that is shown."""
        place = [one.pk for one in self._executions].index(self.node.pk)
        return Paginator(self._executions, self.space.executions).page(place // self.space.executions + 1)

    @property
    def earlier(self) -> RunNode | None:
        """The last of those before the executions shown."""
        return self._executions[self.executions.start_index() - 2] if self.executions.has_previous() else None

    @property
    def later(self) -> RunNode | None:
        return self._executions[self.executions.end_index()] if self.executions.has_next() else None

    @property
    def has_rounds(self) -> bool:
        return self._executions[-1].iteration > 1

    @cached_property
    def is_library_soul(self) -> bool:
        """Whether the block's soul has a page of its own: a document may bring one under the same name."""
        versions = SoulVersion.objects.filter(soul__slug=self.node.soul_id, version=self.node.soul_version)
        return bool(self.node.soul_id) and versions.exists()

    @cached_property
    def output(self) -> Output:
        return read_output(self.node.output, self.space.output, self._paths)

    @cached_property
    def prompt(self) -> Output:
        return read_text(self.node.prompt, self.space.text)

    @property
    def _configs(self) -> Sequence[Mapping[str, Any]]:
        return (self.block.assertions if self.block else None) or ()

    @property
    def _paths(self) -> list[str]:
        found = [str(config.get("transform") or "") for config in self._configs if isinstance(config, dict)]
        return [path.partition(":")[2].strip() for path in found if path.startswith("json_path:")]

    @cached_property
    def history(self) -> list[Observation]:
        """What the block did in the runs before this one, oldest first."""
        until = self.node.finished_at or timezone.now()
        rows = Observation.objects.filter(
            workflow=self.run.workflow_id, node_id=self.node.node_id, at__lt=until
        )
        fields = ("score", "cost_usd", "latency_ms", "tokens", "assertions")
        return list(rows.only(*fields).order_by("-at")[:HISTORY])[::-1]

    @cached_property
    def assertions(self) -> Page[Assertion]:
        """In the order written; where they are many, first those that did not pass."""
        results = (self.node.eval_results or {}).get("assertions", [])
        if len(results) > self.space.assertions:
            results = sorted(results, key=lambda one: bool(one["passed"]))
        page = Paginator(results, self.space.assertions).get_page(self.assertions_page)
        keys = keys_for(self.run.version, self.node.node_id)
        page.object_list = [self._assertion(one, keys) for one in page.object_list]
        return page

    def _assertion(self, one: Mapping[str, Any], keys: Sequence[str]) -> Assertion:
        index = one.get("index", 0)
        config = self._configs[index] if index < len(self._configs) else {}
        fact = self._fact(keys[index] if index < len(keys) else "")
        return shown_assertion(one, config, fact, most_bytes=self.space.value)

    def _fact(self, key: str) -> str:
        """How often it passed lately, in words."""
        seen = [row.assertions[key] for row in self.history if key in row.assertions]
        return f"{sum(map(bool, seen))} of the last {len(seen)}" if seen else ""

    @property
    def evaluation_error(self) -> str:
        return str((self.node.eval_results or {}).get("error") or "")

    @cached_property
    def compared(self) -> list[Compared]:
        """Score, cost, latency and tokens beside what is usual."""
        node, delta = self.node, self.node.delta or {}
        figures = (
            ("Score", "score", node.eval_score, delta.get("score_delta"), "score", "score"),
            ("Cost", "cost", node.cost_usd, delta.get("cost_pct"), "cost_pct", "cost_usd"),
            ("Latency", "latency", node.latency_ms, delta.get("latency_pct"), "latency_pct", "latency_ms"),
            ("Tokens", "tokens", node.total_tokens, delta.get("tokens_pct"), "tokens_pct", "tokens"),
        )
        return [self._compared(*figure) for figure in figures if figure[2] is not None]

    def _compared(
        self, label: str, metric: str, value: Any, change: float | None, change_metric: str, column: str
    ) -> Compared:
        is_score = metric == "score"
        delta = self.node.delta or {}
        past = [getattr(row, column) for row in self.history]
        runs = (delta.get("baseline_counts") or {}).get(metric)
        usual = delta.get("baseline_score") if is_score else _before(value, change)
        if usual is None and delta and not any(past):  # nothing has no percentage
            usual = 0.0 if past else None
        if change is not None and formats.reads_alike(value, usual, metric):
            change = 0.0  # what nobody sees is no change
        is_worse = change is not None and formats.change(change, change_metric).verdict == "worse"
        line = charts.sparkline(
            [*past, value], metric=metric, width=140, tone="bad" if is_worse else "accent"
        )
        return Compared(
            label,
            metric,
            value,
            change,
            change_metric,
            usual,
            delta.get("low") if is_score else None,
            delta.get("high") if is_score else None,
            line if past else SafeString(""),
            runs if runs != self.usual_count else None,
        )

    @property
    def usual_count(self) -> int:
        return int((self.node.delta or {}).get("baseline_run_count") or 0)

    @cached_property
    def given(self) -> list[NamedOutput]:
        """The block's inputs; of one that was asked by a prompt, the prompt tells what was not declared."""
        if self.definition is None or self.block is None or (self.node.prompt and self.block.inputs is None):
            return []
        return read_values(given_to(self.run, self.node, self.definition), self.space.given)

    @cached_property
    def printed(self) -> Output:
        """What a code block printed."""
        return read_text(str(self.node.details.get("stdout") or ""), self.space.text)

    @property
    def model(self) -> str:
        words = (self.node.details.get("model"), self.node.details.get("provider"))
        return " · ".join(str(word) for word in words if word)


def _before(value: float, percent: float | None) -> float | None:
    """What a value was before it changed by so many percent."""
    return None if percent is None or percent <= -100 else value / (1 + percent / 100)


def shown_value(config: Mapping[str, Any]) -> str:
    """What an assertion compares with, as text."""
    value = config.get("value")
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shown_assertion(
    one: Mapping[str, Any], config: Mapping[str, Any], fact: str = "", *, most_bytes: int = BESIDE.value
) -> Assertion:
    """A stored grading result beside its entry in the document, as `evals/_assertion.html` prints it."""
    kind = one["type"].removeprefix("not-")
    full = shown_value(config)
    return Assertion(
        type=one["type"],
        word="error" if one["error"] else "passed" if one["passed"] else "failed",
        reason=one["reason"],
        score=one["score"],
        weight=f"{one['weight']:g}",
        expected=expected(kind, config, full),
        full_value=beginning(full, most_bytes) if len(full) > LONGEST_VALUE else "",
        is_cut=html_bytes(full) > most_bytes,
        measured="" if one["measured"] is None else IN_UNITS.get(kind, _plain)(one["measured"]),
        transform=str(config.get("transform") or ""),
        metric=one["metric"] or "",
        fact=fact,
    )


def expected(kind: str, config: Mapping[str, Any], value: str) -> str:
    """What the assertion asked for, short."""
    threshold = config.get("threshold")
    if threshold is not None and (kind in AT_MOST or kind in AT_LEAST):
        limit = IN_UNITS.get(kind, _plain)(threshold) if isinstance(threshold, int | float) else threshold
        return f"{'at most' if kind in AT_MOST else 'at least'} {limit}"
    words = config.get("value")
    if kind == "word-count" and isinstance(words, dict):
        low, high = words.get("min"), words.get("max")
        if low is not None and high is not None:
            return f"{low} to {high} words"
        bound, side = (low, "at least") if low is not None else (high, "at most")
        return f"{side} {bound} word{'' if bound == 1 else 's'}"
    if kind in ("is-json", "contains-json") and value:
        return "JSON that fits the schema"
    return value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…"


def _plain(number: float) -> str:
    return f"{number:,.4g}" if isinstance(number, float) and number % 1 else f"{number:,.0f}"
