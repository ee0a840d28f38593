"""What a version changed, block by block, from the running totals: no run is read again."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any

from evals_app.block_metrics import MEASURED
from evals_app.models import BlockStatistics
from evals_app.monitoring.regressions import WEAK, evidence_word, metric_of
from workflows_app.display import formats
from workflows_app.models import Workflow

ENOUGH_RUNS = 5
SMALL_SPREAD = 1e-9
MOST_KNOWN = 200  # regressions read of all that a page's versions are suspected of, the newest first


@dataclass(frozen=True)
class Effect:
    """One metric of one block under a version and under the version before it."""

    node_id: str
    metric: str
    version: int
    before: float
    after: float
    count_before: int
    count_after: int
    evidence: float
    is_regression: bool = False  # also found as a regression, whose evidence it has

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def has_enough(self) -> bool:
        return self.is_regression or min(self.count_before, self.count_after) >= ENOUGH_RUNS

    @property
    def word(self) -> str:
        """better, worse, same, or too few runs to say."""
        if not self.has_enough:
            return "too few runs"
        if self.evidence < WEAK:
            return "same"
        return formats.change(self.difference, self.metric).verdict

    @property
    def evidence_word(self) -> str:
        return evidence_word(self.evidence)

    @property
    def before_and_after(self) -> tuple[str, str]:
        """Both values as text that shows they differ."""
        return formats.distinguish(self.before, self.after, self.metric)

    @property
    def sentence(self) -> str:
        """`since version 7: score 0.93 → 0.81, 40 runs each, evidence strong`."""
        values = " → ".join(self.before_and_after)
        if self.count_before == self.count_after:
            runs = f"{self.count_after} run{'' if self.count_after == 1 else 's'} each"
        else:
            runs = f"{self.count_before} and {self.count_after} runs"
        conclusion = f"evidence {self.evidence_word}"
        if not self.has_enough:
            conclusion = f"too few runs to say ({min(self.count_before, self.count_after)} of {ENOUGH_RUNS})"
        elif self.evidence < WEAK:
            conclusion = "no evidence of change"
        return f"since version {self.version}: {self.metric} {values}, {runs}, {conclusion}"


Known = Mapping[tuple[int, str, str], float]


def known_evidence(workflow: Workflow, versions: Collection[int]) -> Known:
    """The evidence of the regressions that versions are suspected of, by version, block and metric. One query.

    An effect compares two versions, a regression the runs before and after it began: for the same change, both
    show the same evidence.
    """
    rows = workflow.regressions.filter(suspected__workflow_version__in=list(versions)).order_by("-found_at")
    known: dict[tuple[int, str, str], float] = {}
    for row in rows.only("workflow", "node_id", "kind", "suspected", "before", "evidence")[:MOST_KNOWN]:
        if row.suspected:  # the newest counts
            known.setdefault((row.suspected["workflow_version"], row.node_id, metric_of(row)), row.evidence)
    return known


def effects_of(rows: Iterable[BlockStatistics], known: Known) -> dict[int, list[Effect]]:
    """By version, every block's score under it and before it, the most evident first."""
    found: dict[int, list[Effect]] = {}
    blocks = list(rows)
    for row in blocks:
        for effect in _of_block(row, "score", len(blocks), known):
            found.setdefault(effect.version, []).append(effect)
    for effects in found.values():
        effects.sort(key=lambda one: (one.has_enough, one.evidence, abs(one.difference)), reverse=True)
    return found


def effects_of_version(
    rows: Iterable[BlockStatistics], version: int, known: Known
) -> dict[str, list[Effect]]:
    """By block, every metric under a version and before it."""
    blocks = list(rows)
    return {
        row.node_id: [
            effect
            for metric in MEASURED
            for effect in _of_block(row, metric, len(blocks), known)
            if effect.version == version
        ]
        for row in blocks
    }


def _of_block(row: BlockStatistics, metric: str, blocks: int, known: Known) -> Iterator[Effect]:
    slices: Mapping[str, Any] = row.slices.get("workflow_version", {})
    seen = sorted((int(version), totals[metric]) for version, totals in slices.items() if metric in totals)
    for (_, before), (version, after) in itertools.pairwise(seen):
        effect = Effect(
            row.node_id,
            metric,
            version=version,
            before=before[1],
            after=after[1],
            count_before=int(before[0]),
            count_after=int(after[0]),
            evidence=max(_nats(before, after) - log(max(blocks, 1)), 0.0),
        )
        evidence = known.get((version, row.node_id, metric))
        if evidence is not None and formats.change(effect.difference, metric).verdict != "better":
            effect = replace(effect, evidence=evidence, is_regression=True)
        yield effect


def _nats(before: list[float], after: list[float]) -> float:
    """Evidence for a difference of two means, each a count, a mean and a sum of squared deviations."""
    (count, mean, squares), (count_after, mean_after, squares_after) = before, after
    if min(count, count_after) < 2 or mean == mean_after:
        return 0.0
    pooled = (squares + squares_after) / (count + count_after - 2)
    spread = max(pooled, SMALL_SPREAD * (1 + mean * mean))
    return float((mean_after - mean) ** 2 / (2 * spread * (1 / count + 1 / count_after)))
