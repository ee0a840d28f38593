"""Two runs side by side: what flipped, what changed, and a summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models.functions import Length, Substr
from django.utils.text import Truncator

from evals_app.block_assertions import keys_for
from evals_app.block_metrics import MEASURED, Values, change_metric_of, change_of, node_values
from evals_app.pages.outputs import indented
from evals_app.pages.run.blocks import blocks_in_order
from workflows_app.display import formats
from workflows_app.display.diff import Diff, side_by_side
from workflows_app.models import Run, RunNode, RunStatus
from workflows_app.security.credentials import shown_inputs

MOST_CHARACTERS = 200_000  # of each output; the rest is not compared, and the page shows a note
FIELDS = (
    "run_id", "node_id", "block_type", "iteration", "attempt", "status", "cost_usd", "tokens", "latency_ms",
    "eval_score", "eval_passed", "eval_results",
)  # fmt: skip
WORSE, BETTER = "worse", "better"
WORDS = {
    "passed": "passed",
    "failed": "failed",
    "error": "could not be checked",
    "unfinished": "did not finish",
    "none": "was not graded",
}
OPEN_ENDS = {
    RunStatus.PENDING: "has not begun",
    RunStatus.RUNNING: "is still running",
    RunStatus.FAILED: "failed before its end",
    RunStatus.CANCELLED: "was cancelled before its end",
}


@dataclass(frozen=True)
class AssertionFlip:
    """An assertion whose verdict changed."""

    type: str
    was: str  # passed, failed, error, none
    now: str
    reason: str

    @property
    def direction(self) -> str:
        if self.now == "passed":
            return BETTER if self.was in ("failed", "error") else ""
        return WORSE if self.was == "passed" else ""


@dataclass(frozen=True)
class Figure:
    """One number before and after."""

    label: str
    metric: str
    old: float | None
    new: float | None
    change: float | None
    change_metric: str


@dataclass
class ComparedBlock:
    """One block in both runs; either may lack it."""

    block_id: str
    old: RunNode | None
    new: RunNode | None
    old_run: Run
    new_run: Run
    diff: Diff | None = None  # as much of it as the page shows

    @property
    def kind(self) -> str:
        node = self.new or self.old
        return node.block_type if node else ""

    @property
    def old_status(self) -> str:
        return self.old.status if self.old else "none"

    @property
    def new_status(self) -> str:
        return self.new.status if self.new else "none"

    @cached_property
    def flips(self) -> list[AssertionFlip]:
        """Verdicts that changed, for the worse first. Assertions of one version only are no flip."""
        before = _verdicts(self.old_run, self.old)
        found = []
        for key, one in _verdicts(self.new_run, self.new).items():
            was, now = before.get(key), _word(one)
            if was is not None and _word(was) != now:
                found.append(AssertionFlip(one["type"], _word(was), now, one["reason"]))
        return sorted(found, key=lambda flip: (flip.direction != WORSE, flip.direction != BETTER))

    @property
    def has_common_assertions(self) -> bool:
        return not _verdicts(self.old_run, self.old).keys().isdisjoint(_verdicts(self.new_run, self.new))

    @property
    def is_output_changed(self) -> bool:
        return _output(self.old) != _output(self.new) or _length(self.old) != _length(self.new)

    @property
    def has_output(self) -> bool:
        return bool(_length(self.old) or _length(self.new))

    @property
    def is_changed(self) -> bool:
        return bool(self.flips) or self.is_output_changed or self.old_status != self.new_status

    @property
    def is_cut(self) -> bool:
        return max(_length(self.old), _length(self.new)) > MOST_CHARACTERS

    @cached_property
    def whole_diff(self) -> Diff:
        return side_by_side(indented(_output(self.old)), indented(_output(self.new)))

    @cached_property
    def figures(self) -> list[Figure]:
        return _figures(*(node_values(node) if node else {} for node in (self.old, self.new)))

    @property
    def rank(self) -> int:
        """Its place in the list: what became worse first, what is the same last."""
        directions = {flip.direction for flip in self.flips}
        if WORSE in directions or (self.new_status == "failed" and self.old_status != "failed"):
            return 0
        if self.flips:
            return 1
        return 2 if self.is_changed else 3


@dataclass
class Comparison:
    """A run beside another; the other is the one from before."""

    new: Run
    old: Run

    @property
    def is_same_workflow(self) -> bool:
        return self.new.workflow_id == self.old.workflow_id

    @property
    def new_title(self) -> str:
        return self._title(self.new)

    @property
    def old_title(self) -> str:
        return self._title(self.old)

    def _title(self, run: Run) -> str:
        """A run's number, with its workflow where there are two."""
        slug = "" if self.is_same_workflow else f"{Truncator(run.workflow.slug).chars(60)} "
        return f"{slug}#{run.number}"

    @cached_property
    def blocks(self) -> list[ComparedBlock]:
        before, after = _last_nodes(self.old), _last_nodes(self.new)
        names = [name for name, _, _ in blocks_in_order(self.new.version.readable_definition)]
        names += [name for name in (*after, *before) if name not in names]
        found = [
            ComparedBlock(name, before.get(name), after.get(name), self.old, self.new)
            for name in dict.fromkeys(names)
            if name in before or name in after
        ]
        return sorted(found, key=lambda block: block.rank)

    @property
    def changed(self) -> list[ComparedBlock]:
        return [block for block in self.blocks if block.is_changed]

    def block(self, block_id: str) -> ComparedBlock | None:
        return next((block for block in self.blocks if block.block_id == block_id), None)

    @cached_property
    def yaml_diff(self) -> Diff:
        return side_by_side(self.old.version.yaml, self.new.version.yaml)

    @cached_property
    def inputs_diff(self) -> Diff:
        return side_by_side(_laid_out(self.old), _laid_out(self.new))

    @property
    def figures(self) -> list[Figure]:
        return _figures(_run_values(self.old), _run_values(self.new))

    @cached_property
    def tone(self) -> str:
        """worse, better, mixed or same."""
        worse, better = self._flipped(WORSE), self._flipped(BETTER)
        if worse and better:
            return "mixed"
        statuses = (self.old.status, self.new.status)
        if worse or statuses == ("completed", "failed"):
            return WORSE
        return BETTER if better or statuses == ("failed", "completed") else "same"

    def _flipped(self, direction: str) -> int:
        return sum(flip.direction == direction for block in self.blocks for flip in block.flips)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        new, old = self.new_title, self.old_title
        if self.tone == "same" and self.old.verdict != self.new.verdict:
            now, before = WORDS[self.new.verdict], WORDS[self.old.verdict]
            return f"{new} {now} and {old} {before}, but every assertion that both have agrees."
        if self.tone == "same":
            return self._sameness()
        words = {
            WORSE: "is worse than",
            BETTER: "is better than",
            "mixed": "is worse in some and better in other respects than",
        }
        return f"{new} {words[self.tone]} {old}."

    def _sameness(self) -> str:
        new, old = self.new_title, self.old_title
        if self._open_ends():
            return f"{new} and {old} can be compared only as far as both came."
        if self.changed and not any(block.has_common_assertions for block in self.blocks):
            return f"{new} and {old} have no assertion in common."
        if self.changed:
            return f"{new} and {old} have the same verdicts."
        if self.is_same_workflow:
            return f"{new} repeats {old} exactly."
        return f"{new} and {old} have the same outputs and verdicts."

    def _open_ends(self) -> list[str]:
        """Which of the two did not finish."""
        found = ((self.old_title, self.old.status), (self.new_title, self.new.status))
        return [f"{title} {OPEN_ENDS[RunStatus(status)]}" for title, status in found if status in OPEN_ENDS]

    @property
    def details(self) -> str:
        """The reasons, in a sentence."""
        parts = self._open_ends()
        for direction, words in (
            (WORSE, "passed before and no longer"),
            (BETTER, "did not pass before and now"),
        ):
            blocks = [b.block_id for b in self.blocks if any(f.direction == direction for f in b.flips)]
            if blocks:
                count = self._flipped(direction)
                verb = "does" if count == 1 else "do"
                named = ", ".join([*blocks[:4], *(["…"] if len(blocks) > 4 else [])])
                parts.append(f"{_count(count, 'assertion')} {words} {verb} ({named})")
        differing = sum(block.is_output_changed for block in self.blocks)
        verb = "differs" if differing == 1 else "differ"
        outputs = f"{differing} of {_count(len(self.blocks), 'output')} {verb}"
        parts.append(outputs if differing else "no output differs")
        if self.is_same_workflow and self.new.version_id != self.old.version_id:
            parts.append(f"version {self.old.version.number} became {self.new.version.number}")
        if self.new.inputs != self.old.inputs:
            parts.append("the inputs were not the same")
        text = "; ".join(parts)
        return text[:1].upper() + text[1:] + "."


def _laid_out(run: Run) -> str:
    return json.dumps(shown_inputs(run), indent=2, ensure_ascii=False, sort_keys=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _last_nodes(run: Run) -> dict[str, RunNode]:
    """The last execution of each block, with as much of its output as is compared."""
    nodes = run.nodes.only(*FIELDS).annotate(
        head=Substr("output", 1, MOST_CHARACTERS), output_length=Length("output")
    )
    return {node.node_id: node for node in nodes.order_by("iteration", "attempt")}


def _output(node: RunNode | None) -> str:
    return node.head if node else ""  # type: ignore[attr-defined]  # annotated above


def _length(node: RunNode | None) -> int:
    return node.output_length if node else 0  # type: ignore[attr-defined]  # annotated above


def _verdicts(run: Run, node: RunNode | None) -> dict[str, Mapping[str, Any]]:
    """Grading results by the key that follows an assertion from version to version."""
    if node is None:
        return {}
    keys = keys_for(run.version, node.node_id)
    found: dict[str, Mapping[str, Any]] = {}
    for one in (node.eval_results or {}).get("assertions", []):
        if one["index"] < len(keys):
            found.setdefault(keys[one["index"]], one)
    return found


def _word(one: Mapping[str, Any]) -> str:
    return formats.result_word(passed=one["passed"], error=one["error"])


def _run_values(run: Run) -> Values:
    return {
        "score": run.eval_score,
        "cost": run.cost_usd,
        "latency": run.duration_ms,
        "tokens": run.total_tokens,
    }


def _figures(old: Values, new: Values) -> list[Figure]:
    pairs = {metric: (old.get(metric), new.get(metric)) for metric in MEASURED}
    return [
        Figure(
            formats.METRICS[metric].label, metric, *pair, change_of(metric, *pair), change_metric_of(metric)
        )
        for metric, pair in pairs.items()
        if pair != (None, None)
    ]
