"""The blocks on a workflow's page: state, typical values, and assertions with their history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator

from evals_app.assertion_words import asks
from evals_app.block_assertions import assertion_key
from evals_app.block_metrics import MEASURED
from evals_app.charts import strip
from evals_app.models import BlockStatistics, Observation
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.models import Workflow

HISTORY = 30  # runs in a small history
BLOCKS_A_PAGE = 20
ASSERTIONS_A_PAGE = 50
MOST_NAMED = 3

# By the state that the evidence computed: label, icon and tone.
STATES = {
    "worse": ("Worse", "trend-down", "bad"),
    "better": ("Better", "trend-up", "good"),
    "no evidence of change": ("No evidence of change", "equal", "idle"),
    "too few runs": ("Too few runs", "pending", "idle"),
}


def block_page(
    workflow: Workflow,
    statistics: Mapping[str, BlockStatistics],
    number: int = 0,
    opened: str = "",
    assertions_page: int = 1,
) -> Page[Any]:
    """One page of the current version's blocks: the asked one, or the one with the opened block."""
    definition = workflow.readable_definition
    blocks = list(definition.blocks.values()) if definition else []
    loops = definition.inner_blocks if definition else {}
    place = next((place for place, block in enumerate(blocks) if block.id == opened), 0)
    page: Page[Any] = Paginator(blocks, BLOCKS_A_PAGE).get_page(number or place // BLOCKS_A_PAGE + 1)
    latest = _latest([statistics[block.id] for block in page.object_list if block.id in statistics])
    page.object_list = [
        _row(
            block,
            loops.get(block.id),
            statistics.get(block.id),
            latest.get(block.id, []),
            assertions_page if block.id == opened else 1,
        )
        for block in page.object_list
    ]
    return page


def _latest(statistics: Iterable[BlockStatistics]) -> dict[str, list[Observation]]:
    """The newest observations of blocks, oldest first."""
    found: dict[str, list[Observation]] = {}
    rows = Observation.objects.newest(statistics, HISTORY).only("node_id", "assertions")
    for row in rows.order_by("number"):
        found.setdefault(row.node_id, []).append(row)
    return found


def _row(
    block: BaseBlockDef,
    loop: str | None,
    row: BlockStatistics | None,
    latest: list[Observation],
    assertions_page: int,
) -> dict[str, Any]:
    slices = (row.slices if row else {}).get("assertion", {})
    configs: Sequence[Any] = block.assertions or ()
    if len(configs) > ASSERTIONS_A_PAGE:  # of many, those that pass least come first, and the ungraded last
        rates = {key: rate for key, totals in slices.items() if (rate := _pass_rate(totals)) is not None}
        configs = sorted(configs, key=lambda config: rates.get(assertion_key(config), 2.0))
    assertions: Page[Any] = Paginator(configs, ASSERTIONS_A_PAGE).get_page(assertions_page)
    assertions.object_list = [_assertion(config, slices, latest) for config in assertions.object_list]
    baseline = row.compared_with if row else {}
    return {
        "id": block.id,
        "kind": block.type,
        "count": row.count if row else 0,
        "state": state_of(row),
        "typical": {name: baseline[name]["mean"] if name in baseline else None for name in MEASURED},
        "is_pinned": bool(row and row.pinned),
        "assertions": assertions,
        "loop": loop,
    }


def state_of(row: BlockStatistics | None) -> dict[str, str]:
    """The state of a block as its badge shows it; `names` lists what is worse or better where the label has no room."""
    verdicts = row.verdicts if row else {}
    overall = verdicts.get("overall")
    word = overall["state"] if overall else "too few runs"
    label, icon, tone = STATES[word]
    if word == "too few runs" and overall:
        label = f"{label} ({overall['count']} of {overall['needed']})"
    state = {"label": label, "icon": icon, "tone": tone, "names": ""}
    if word not in ("worse", "better"):
        return state
    keys = [key for key, verdict in verdicts.items() if verdict["state"] == word and key != "overall"]
    names = list(dict.fromkeys(key.removeprefix("assertion:").partition("#")[0] for key in keys))
    is_cut = len(names) > MOST_NAMED
    shown = ", ".join([*names[:MOST_NAMED], "…"] if is_cut else names)
    return state | {"label": f"{label}: {shown}", "names": ", ".join(names) if is_cut else ""}


def _pass_rate(totals: Mapping[str, Any]) -> float | None:
    return totals["passed"] / totals["graded"] if totals.get("graded") else None


def _assertion(config: Any, slices: Mapping[str, Any], latest: list[Observation]) -> dict[str, Any]:
    """One assertion of a block: what it requires, how often it passed, and its last results."""
    key = assertion_key(config)
    return {
        "type": config.get("type"),
        "asks": asks(config),
        "metric": config.get("metric") or "",
        "pass_rate": _pass_rate(slices.get(key, {})),
        "history": strip([one.assertions[key] for one in latest if key in one.assertions]),
    }
