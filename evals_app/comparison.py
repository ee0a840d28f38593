"""Two runs side by side: what flipped, what changed, and the sentence that sums it up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models.functions import Length, Substr
from django.utils.text import Truncator

from evals_app.outputs import indented
from evals_app.plans import keys_for
from evals_app.run_blocks import blocks_in_order
from workflows_app import formats
from workflows_app.credentials import shown_inputs
from workflows_app.diff import Diff, side_by_side
from workflows_app.models import Run, RunNode, RunStatus

MOST_CHARACTERS = 200_000  # of each output; what lies beyond is not compared, and the page says so
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
class Flip:
    """An assertion whose verdict is not what it was."""

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


class ComparedBlock:
    """One block in both runs; either may lack it."""

    def __init__(
        self, block_id: str, old: RunNode | None, new: RunNode | None, old_run: Run, new_run: Run
    ) -> None:
        self.block_id = block_id
        self.old = old
        self.new = new
        self.old_run = old_run
        self.new_run = new_run
        self.diff: Diff | None = None  # as much of it as the page shows

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
    def flips(self) -> list[Flip]:
        """Verdicts that changed, for the worse first. Assertions of one version only are no flip."""
        before = _verdicts(self.old_run, self.old)
        found = []
        for key, one in _verdicts(self.new_run, self.new).items():
            was, now = before.get(key), _word(one)
            if was is not None and _word(was) != now:
                found.append(Flip(one["type"], _word(was), now, one["reason"]))
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
        return _figures(_numbers(self.old), _numbers(self.new))

    @property
    def rank(self) -> int:
        """Where it stands: what became worse first, what is the same last."""
        directions = {flip.direction for flip in self.flips}
        if WORSE in directions or (self.new_status == "failed" and self.old_status != "failed"):
            return 0
        if self.flips:
            return 1
        return 2 if self.is_changed else 3


class Comparison:
    """A run beside another; the other is the one from before."""

    def __init__(self, new: Run, old: Run) -> None:
        self.new = new
        self.old = old

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
        return (
            f"#{run.number}"
            if self.is_same_workflow
            else f"{Truncator(run.workflow.slug).chars(60)} #{run.number}"
        )

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
        return _figures(_run_numbers(self.old), _run_numbers(self.new))

    @cached_property
    def tone(self) -> str:
        """worse, better, mixed or same."""
        worse, better = self._flipped(WORSE), self._flipped(BETTER)
        if worse and better:
            return "mixed"
        if worse or (self.new.status == "failed" and self.old.status == "completed"):
            return WORSE
        return (
            BETTER if better or (self.old.status == "failed" and self.new.status == "completed") else "same"
        )

    def _flipped(self, direction: str) -> int:
        return sum(flip.direction == direction for block in self.blocks for flip in block.flips)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        new, old = self.new_title, self.old_title
        if self.tone == "same" and self.old.verdict != self.new.verdict:
            now, before = WORDS[self.new.verdict], WORDS[self.old.verdict]
            return f"{new} {now} and {old} {before}, though no assertion that both have tells them apart."
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
        """Which of the two did not come to its end."""
        found = ((self.old_title, self.old.status), (self.new_title, self.new.status))
        return [f"{title} {OPEN_ENDS[RunStatus(status)]}" for title, status in found if status in OPEN_ENDS]

    @property
    def details(self) -> str:
        """The sentence that says why."""
        parts = self._open_ends()
        for direction, words in (
            (WORSE, "passed before and no longer"),
            (BETTER, "did not pass before and now"),
        ):
            blocks = [b.block_id for b in self.blocks if any(f.direction == direction for f in b.flips)]
            if blocks:
                count = self._flipped(direction)
                verb = "does" if count == 1 else "do"
                parts.append(
                    f"{_count(count, 'assertion')} {words} {verb} ({', '.join(blocks[:4])}{', …' if len(blocks) > 4 else ''})"
                )
        differing = sum(block.is_output_changed for block in self.blocks)
        outputs = _count(len(self.blocks), "output")
        parts.append(
            f"{differing} of {outputs} differ{'s' if differing == 1 else ''}"
            if differing
            else "no output differs"
        )
        if self.is_same_workflow and self.new.version_id != self.old.version_id:
            parts.append(f"version {self.old.version.number} became {self.new.version.number}")
        if self.new.inputs != self.old.inputs:
            parts.append("the inputs were not the same")
        text = "; ".join(parts)
        return text[:1].upper() + text[1:] + "."


def show_beginnings(blocks: Sequence[ComparedBlock], most_bytes: int) -> None:
    """Let blocks show as much of what differs as fits on one page; what one does not need, the next may use."""
    for place, block in enumerate(blocks):
        block.diff = block.whole_diff.beginning(most_bytes // (len(blocks) - place))
        most_bytes -= block.diff.weight


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
    return "error" if one["error"] else "passed" if one["passed"] else "failed"


Numbers = Mapping[str, float | None]


def _numbers(node: RunNode | None) -> Numbers:
    if node is None:
        return {}
    return {
        "score": node.eval_score,
        "cost": node.cost_usd,
        "latency": node.latency_ms,
        "tokens": node.total_tokens,
    }


def _run_numbers(run: Run) -> Numbers:
    return {
        "score": run.eval_score,
        "cost": run.cost_usd,
        "latency": run.duration_ms,
        "tokens": run.total_tokens,
    }


def _figures(old: Numbers, new: Numbers) -> list[Figure]:
    found = []
    for metric, label in (("score", "Score"), ("cost", "Cost"), ("latency", "Time"), ("tokens", "Tokens")):
        before, after = old.get(metric), new.get(metric)
        if before is None and after is None:
            continue
        change, change_metric = None, metric if metric == "score" else f"{metric}_pct"
        if before is not None and after is not None:
            if formats.reads_alike(before, after, metric):
                change = 0.0  # what nobody sees is no change
            elif metric == "score":
                change = after - before
            elif before:
                change = (after / before - 1) * 100
        found.append(Figure(label, metric, before, after, change, change_metric))
    return found
