"""Everything one node's inspector shows: output, assertions, how it differs from earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils import timezone

from evals_app import assertion_words, charts
from evals_app.block_assertions import keys_for
from evals_app.block_metrics import COLUMNS, change_metric_of, node_values
from evals_app.models import Observation
from evals_app.pages.outputs import Output, read_output, read_text, read_values
from workflows_app.display import formats
from workflows_app.documents.block_inputs import inputs_of
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.models import Run, RunNode, SoulVersion

HISTORY = 50
ASSERTIONS_A_PAGE = 100
MANY_ASSERTIONS = 12  # of more, those that did not pass come first
EXECUTIONS_A_PAGE = 50


class Inspector:
    """One node of a run, beside the others or alone on its page; its queries do not grow with anything."""

    def __init__(self, run: Run, node: RunNode, assertions_page: int = 1) -> None:
        self.run = run
        self.node = node
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
    def executions(self) -> Page[Any]:
        """Those around the one that is shown, each with what it is called."""
        place = [one.pk for one in self._executions].index(self.node.pk)
        page: Page[Any] = Paginator(self._executions, EXECUTIONS_A_PAGE).page(place // EXECUTIONS_A_PAGE + 1)
        page.object_list = [(one, self._label(one)) for one in page.object_list]
        return page

    def _label(self, one: RunNode) -> str:
        if self._executions[-1].iteration == 1:
            return f"Attempt {one.attempt}"
        is_telling = one.attempt > 1 or one.status == "failed"
        return f"Round {one.iteration}" + (f", attempt {one.attempt}" if is_telling else "")

    @property
    def earlier(self) -> RunNode | None:
        """The last of those before the executions shown."""
        return self._executions[self.executions.start_index() - 2] if self.executions.has_previous() else None

    @property
    def later(self) -> RunNode | None:
        return self._executions[self.executions.end_index()] if self.executions.has_next() else None

    @cached_property
    def is_library_soul(self) -> bool:
        """Whether the block's soul has a page of its own: a document may bring one under the same name."""
        versions = SoulVersion.objects.filter(soul__slug=self.node.soul_id, version=self.node.soul_version)
        return bool(self.node.soul_id) and versions.exists()

    @cached_property
    def output(self) -> Output:
        return read_output(self.node.output, self._paths)

    @cached_property
    def prompt(self) -> Output:
        return read_text(self.node.prompt)

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
    def assertions(self) -> Page[Any]:
        """In the order written; where they are many, first those that did not pass."""
        results = (self.node.eval_results or {}).get("assertions", [])
        if len(results) > MANY_ASSERTIONS:
            results = sorted(results, key=lambda one: bool(one["passed"]))
        page = Paginator(results, ASSERTIONS_A_PAGE).get_page(self.assertions_page)
        keys = keys_for(self.run.version, self.node.node_id)
        page.object_list = [self._assertion(one, keys) for one in page.object_list]
        return page

    def _assertion(self, one: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
        index = one.get("index", 0)
        config = self._configs[index] if index < len(self._configs) else {}
        key = keys[index] if index < len(keys) else ""
        seen = [row.assertions[key] for row in self.history if key in row.assertions]
        fact = f"{sum(map(bool, seen))} of the last {len(seen)}" if seen else ""
        return shown_assertion(one, config, fact)

    @property
    def evaluation_error(self) -> str:
        return str((self.node.eval_results or {}).get("error") or "")

    @cached_property
    def compared(self) -> list[dict[str, Any]]:
        """Score, cost, latency and tokens beside their baselines."""
        values = node_values(self.node)
        return [self._compared(metric, value) for metric, value in values.items() if value is not None]

    def _compared(self, metric: str, value: float) -> dict[str, Any]:
        is_score = metric == "score"
        delta = self.node.delta or {}
        change = delta.get("score_delta" if is_score else f"{metric}_pct")
        change_metric = change_metric_of(metric)
        past = [getattr(row, COLUMNS[metric]) for row in self.history]
        baseline = delta.get("baseline_score") if is_score else _before(value, change)
        if baseline is None and delta and past and not any(past):  # nothing has no percentage
            baseline = 0.0
        if change is not None and formats.reads_alike(value, baseline, metric):
            change = 0.0  # differences below display precision are not changes
        is_worse = change is not None and formats.change(change, change_metric).verdict == "worse"
        line = charts.sparkline(
            [*past, value], metric=metric, width=140, tone="bad" if is_worse else "accent"
        )
        return {
            "label": formats.METRICS[metric].label,
            "metric": metric,
            "value": value,
            "change": change,
            "change_metric": change_metric,
            "normal": "no baseline yet" if baseline is None else self._normal(metric, baseline),
            "history": line if past else "",
        }

    def _normal(self, metric: str, baseline: float) -> str:
        """What the value was in the runs before; how many they were, where they are fewer than for another metric."""
        delta = self.node.delta or {}
        runs = (delta.get("baseline_counts") or {}).get(metric)
        count = f" of {runs} runs" if runs and runs != self.baseline_runs else ""
        words = f"mean{count} before it: {formats.metric(baseline, metric)}"
        if metric != "score" or delta.get("low") is None:
            return words
        low, high = (formats.metric(delta.get(name), metric) for name in ("low", "high"))
        return f"{words}, mostly {low}" + (f" to {high}" if low != high else "")

    @property
    def baseline_runs(self) -> int:
        return int((self.node.delta or {}).get("baseline_run_count") or 0)

    @cached_property
    def inputs(self) -> list[tuple[str, Output]]:
        """The block's inputs; of a block with a prompt, the prompt also shows what was not declared."""
        if self.definition is None or self.block is None or (self.node.prompt and self.block.inputs is None):
            return []
        return read_values(inputs_of(self.run, self.node, self.definition))

    @cached_property
    def printed(self) -> Output:
        """What a code block printed."""
        return read_text(str(self.node.details.get("stdout") or ""))

    @property
    def model(self) -> str:
        words = (self.node.details.get("model"), self.node.details.get("provider"))
        return " · ".join(str(word) for word in words if word)


def _before(value: float, percent: float | None) -> float | None:
    """What a value was before it changed by so many percent."""
    return None if percent is None or percent <= -100 else value / (1 + percent / 100)


def shown_assertion(one: Mapping[str, Any], config: Mapping[str, Any], fact: str = "") -> dict[str, Any]:
    """A stored grading result beside its entry in the document, as `evals/_assertion.html` prints it."""
    full = assertion_words.full_value(config)
    number = one["measured"]
    return {
        **one,
        "word": formats.result_word(passed=one["passed"], error=one["error"]),
        "weight": f"{one['weight']:g}",
        "expected": assertion_words.expected(config),
        "full_value": full if len(full) > assertion_words.LONGEST_VALUE else "",
        "measured": ""
        if number is None
        else assertion_words.number_text(assertion_words.kind_of(one), number),
        "transform": str(config.get("transform") or ""),
        "fact": fact,
    }
