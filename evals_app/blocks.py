"""What a workflow's page says about each block: its state, what is usual, and its assertions with their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from evals_app.charts import strip
from evals_app.inspector import expected, shown_value
from evals_app.models import BlockStatistics, Observation
from evals_app.plans import assertion_key
from evals_app.statistics import METRICS
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.models import Workflow

HISTORY = 30  # runs in a small history
MOST_SHOWN = 40  # blocks on one page, unless all are asked for
LONGEST_VALUE = 60

# The state, its icon and tone; the words are the evidence's own.
STATES = {
    "worse": ("Worse", "trend-down", "bad"),
    "better": ("Better", "trend-up", "good"),
    "no evidence of change": ("No evidence of change", "equal", "idle"),
    "too few runs": ("Too few runs", "pending", "idle"),
}


@dataclass(frozen=True)
class State:
    """One of the four states, as a badge shows it."""

    word: str
    label: str
    icon: str
    tone: str


@dataclass(frozen=True)
class AssertionRow:
    """One assertion of a block: what it asks, how often it passed, and lately."""

    type: str
    asks: str
    metric: str
    weight: Any
    passed: int
    graded: int
    history: SafeString

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.graded if self.graded else None


@dataclass(frozen=True)
class BlockRow:
    """One block: its kind, its state by metric, what is usual, its assertions."""

    id: str
    kind: str
    count: int
    state: State
    usual: Mapping[str, float | None]  # mean by metric
    is_pinned: bool
    assertions: list[AssertionRow]
    history: SafeString
    loop: str | None = None


def block_rows(
    workflow: Workflow, statistics: Mapping[str, BlockStatistics], *, shows_all: bool = False
) -> tuple[list[BlockRow], int]:
    """The rows of the current version's blocks, and how many were left out. One query."""
    version = workflow.current_version
    definition = version.readable_definition if version else None
    if definition is None:
        return [], 0
    blocks = list(definition.blocks.values())
    shown = blocks if shows_all else blocks[:MOST_SHOWN]
    latest = _latest(workflow, [block.id for block in shown])
    loops = definition.inner_blocks
    rows = [
        _row(block, statistics.get(block.id), latest.get(block.id, []), loops.get(block.id))
        for block in shown
    ]
    return rows, len(blocks) - len(shown)


def _latest(workflow: Workflow, names: Sequence[str]) -> dict[str, list[Observation]]:
    """The observations of the newest runs by block, oldest first."""
    rows = (
        Observation.objects.filter(workflow=workflow, run_number__gt=workflow.last_run_number - HISTORY)
        .only("node_id", "number", "passed", "assertions")
        .order_by("run_number", "number")
    )
    wanted = set(names)
    found: dict[str, list[Observation]] = {}
    for row in rows:
        if row.node_id in wanted:
            found.setdefault(row.node_id, []).append(row)
    return found


def _row(
    block: BaseBlockDef, row: BlockStatistics | None, latest: list[Observation], loop: str | None
) -> BlockRow:
    slices = (row.slices if row else {}).get("assertion", {})
    return BlockRow(
        id=block.id,
        kind=block.type,
        count=row.count if row else 0,
        state=state_of(row),
        usual=_usual(row),
        is_pinned=bool(row and row.pinned),
        assertions=[_assertion(config, slices, latest) for config in block.assertions or ()],
        history=strip([one.passed for one in latest]),
        loop=loop,
    )


def _usual(row: BlockStatistics | None) -> dict[str, float | None]:
    baseline = (row.pinned or row.baseline or {}) if row else {}
    return {name: baseline[name]["mean"] if name in baseline else None for name in METRICS}


def state_of(row: BlockStatistics | None) -> State:
    """The worst that the evidence says of a block, in the words of the design."""
    verdicts = row.verdicts if row else {}
    for word in ("worse", "better", "no evidence of change"):
        named = [name for name, verdict in verdicts.items() if verdict["state"] == word]
        if named:
            label, icon, tone = STATES[word]
            if word != "no evidence of change":
                label = ": ".join(filter(None, (label, _named(named))))
            return State(word, label, icon, tone)
    label, icon, tone = STATES["too few runs"]
    few = next(iter(verdicts.values()), None)
    if few:
        label = f"{label} ({few['count']} of {few['needed']})"
    return State("too few runs", label, icon, tone)


def _named(verdicts: Sequence[str]) -> str:
    """What a state is about: metrics and assertions by name; that of the block as a whole says nothing more."""
    names = [name.removeprefix("assertion:").partition("#")[0] for name in verdicts if name != "overall"]
    shown = list(dict.fromkeys(names))
    return ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")


def _assertion(config: Any, slices: Mapping[str, Any], latest: list[Observation]) -> AssertionRow:
    key = assertion_key(config)
    totals = slices.get(key, {})
    verdicts = [one.assertions[key] for one in latest if key in one.assertions]
    return AssertionRow(
        type=str(config.get("type")),
        asks=asks(config),
        metric=str(config.get("metric") or ""),
        weight=config.get("weight"),
        passed=totals.get("passed", 0),
        graded=totals.get("graded", 0),
        history=strip(verdicts),
    )


def asks(config: Mapping[str, Any]) -> str:
    """What an assertion asks for, in a line."""
    value = shown_value(config)
    words = expected(str(config.get("type")).removeprefix("not-"), config, value)
    text_beside = value if config.get("threshold") is not None else ""
    parts = (text_beside, words, str(config.get("transform") or ""))
    text = " · ".join(part for part in parts if part).replace("\n", " ")
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
