"""What a workflow's page says about each block: its state, what is usual, and its assertions with their history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.safestring import SafeString

from evals_app.charts import strip
from evals_app.inspector import expected, shown_value
from evals_app.models import BlockStatistics, Observation
from evals_app.plans import assertion_key
from evals_app.statistics import METRICS
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.models import Workflow

HISTORY = 30  # runs in a small history
BLOCKS_A_PAGE = 7
ASSERTIONS_A_PAGE = 7
LINES_AT_ONCE = 24  # of the blocks that are open when the page comes; others open when scrolled to
LONGEST_VALUE = 60
MOST_NAMED = 3

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
    names: str = ""  # all that it is about, where the label has no room for them


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
    asked: int  # how many assertions it has
    assertions: Page[AssertionRow] | None  # None: not read, the block is closed
    loop: str | None = None

    @property
    def waiting(self) -> range:
        """One for each assertion that room is kept for."""
        return range(min(self.asked, ASSERTIONS_A_PAGE))


def block_page(
    workflow: Workflow,
    statistics: Mapping[str, BlockStatistics],
    number: int = 0,
    opened: str = "",
    assertions_page: int = 1,
) -> Page[BlockRow]:
    """Some of the current version's blocks, those with the one asked for if no page is; it and the first are open."""
    blocks = _blocks(workflow)
    places = {block.id: place for place, (block, _) in enumerate(blocks)}
    page: Page[Any] = Paginator(blocks, BLOCKS_A_PAGE).get_page(
        number or places.get(opened, 0) // BLOCKS_A_PAGE + 1
    )
    is_open = {opened} if page.has_other_pages() else {opened, *_open_at_once(blocks)}
    latest = _latest(statistics, is_open)
    page.object_list = [
        _row(
            block,
            loop,
            statistics.get(block.id),
            latest.get(block.id, []) if block.id in is_open else None,
            assertions_page if block.id == opened else 1,
        )
        for block, loop in page.object_list
    ]
    return page


def to_pick(names: Sequence[str], chosen: str, most: int) -> Sequence[str]:
    """What a picker offers: all, or those around the chosen one; every other block leads there from its card."""
    place = names.index(chosen) if chosen in names else 0
    start = max(0, min(place - most // 2, len(names) - most))
    return names[start : start + most]


def _open_at_once(blocks: Sequence[tuple[BaseBlockDef, str | None]]) -> Iterator[str]:
    """The first blocks, as long as they are light."""
    room = LINES_AT_ONCE
    for block, _ in blocks:
        room -= 3 + len(block.assertions or ())  # its head and figures are about as heavy as three assertions
        if room < 0:
            return
        yield block.id


def block_row(workflow: Workflow, name: str) -> BlockRow | None:
    """One block of the current version, open; None if it has none of that name."""
    found = next(((block, loop) for block, loop in _blocks(workflow) if block.id == name), None)
    if found is None:
        return None
    statistics = {row.node_id: row for row in workflow.block_statistics.defer("state").filter(node_id=name)}
    return _row(*found, statistics.get(name), _latest(statistics, [name]).get(name, []))


def _blocks(workflow: Workflow) -> list[tuple[BaseBlockDef, str | None]]:
    """The blocks of the current version, each with the loop it is in."""
    version = workflow.current_version
    definition = version.readable_definition if version else None
    if definition is None:
        return []
    loops = definition.inner_blocks
    return [(block, loops.get(block.id)) for block in definition.blocks.values()]


def _latest(
    statistics: Mapping[str, BlockStatistics], names: Collection[str]
) -> dict[str, list[Observation]]:
    """What blocks said in their newest runs, oldest first."""
    rows = Observation.objects.newest((statistics[name] for name in names if name in statistics), HISTORY)
    found: dict[str, list[Observation]] = {}
    for row in rows.only("node_id", "assertions").order_by("number"):
        found.setdefault(row.node_id, []).append(row)
    return found


def _row(
    block: BaseBlockDef,
    loop: str | None,
    row: BlockStatistics | None,
    latest: list[Observation] | None,
    assertions_page: int = 1,
) -> BlockRow:
    slices = (row.slices if row else {}).get("assertion", {})
    configs: Sequence[Any] = block.assertions or ()
    assertions: Page[Any] | None = None
    if latest is not None:
        if len(configs) > ASSERTIONS_A_PAGE:  # of many, those first that pass least
            configs = sorted(configs, key=lambda config: _pass_rate(slices.get(assertion_key(config), {})))
        assertions = Paginator(configs, ASSERTIONS_A_PAGE).get_page(assertions_page)
        assertions.object_list = [_assertion(config, slices, latest) for config in assertions.object_list]
    return BlockRow(
        id=block.id,
        kind=block.type,
        count=row.count if row else 0,
        state=state_of(row),
        usual=_usual(row),
        is_pinned=bool(row and row.pinned),
        asked=len(configs),
        assertions=assertions,
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
            names = _names(named) if word != "no evidence of change" else []
            if not names:
                return State(word, label, icon, tone)
            is_cut = len(names) > MOST_NAMED
            told = ", ".join([*names[:MOST_NAMED], "…"] if is_cut else names)
            return State(word, f"{label}: {told}", icon, tone, ", ".join(names) if is_cut else "")
    label, icon, tone = STATES["too few runs"]
    few = next(iter(verdicts.values()), None)
    if few:
        label = f"{label} ({few['count']} of {few['needed']})"
    return State("too few runs", label, icon, tone)


def _names(verdicts: Sequence[str]) -> list[str]:
    """What a state is about: metrics and assertions by name; that of the block as a whole says nothing more."""
    names = [name.removeprefix("assertion:").partition("#")[0] for name in verdicts if name != "overall"]
    return list(dict.fromkeys(names))


def _pass_rate(totals: Mapping[str, Any]) -> float:
    """For sorting: what was never graded comes last."""
    return totals["passed"] / totals["graded"] if totals.get("graded") else 2.0


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
