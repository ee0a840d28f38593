"""How the blocks that use a soul did, version by version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.safestring import SafeString

from evals_app.charts import TrendPoint, VersionMark, trend_chart
from evals_app.models import BlockStatistics, Observation
from workflows_app.display.formats import iso, short_hash
from workflows_app.documents.usage import Use
from workflows_app.models import Soul, Workflow

MOST_VERSIONS = 200
MOST_BLOCKS = 20  # drawn in one chart
RUNS_OF_BLOCK = 100


def history(soul: Soul) -> list[dict[str, Any]]:
    """Its versions, newest first, with scores summed over every block that used them.

    Reads the blocks' running totals, so it costs the same however many runs there were.
    """
    versions = list(soul.versions.select_related("author")[:MOST_VERSIONS])
    totals: dict[str, list[dict[str, Any]]] = {row.version: [] for row in versions}
    for slices in BlockStatistics.objects.values_list("slices__soul_version", flat=True):
        for version, of_block in (slices or {}).items():
            if version in totals:
                totals[version].append(of_block)
    return [
        {
            "version": row.version,
            "created_at": iso(row.created_at),
            "author": row.author.get_username() if row.author else None,
            "definition": row.definition,
            "runs": sum(one["count"] for one in totals[row.version]),
            "mean_score": _mean(totals[row.version], "score"),
            "pass_rate": _ratio(totals[row.version], "passed", "graded"),
            "mean_cost_usd": _mean(totals[row.version], "cost"),
            "mean_latency_ms": _mean(totals[row.version], "latency"),
        }
        for row in versions
    ]


def _ratio(totals: list[dict[str, Any]], part: str, whole: str) -> float | None:
    count = sum(one[whole] for one in totals)
    return sum(one[part] for one in totals) / count if count else None


def _mean(totals: list[dict[str, Any]], metric: str) -> float | None:
    """The mean over all blocks, from the count and mean of each."""
    known = [one[metric][:2] for one in totals if metric in one]
    count = sum(of_block for of_block, _ in known)
    return sum(of_block * mean for of_block, mean in known) / count if count else None


# Over time


def score_chart(soul: Soul, uses: Iterable[Use]) -> SafeString:
    """The scores of the blocks that use a soul, in time, with its versions marked. One query."""
    blocks = [(use.workflow, block) for use in uses for block in use.blocks][:MOST_BLOCKS]
    rows = _observations(blocks) if blocks else []
    points = [
        TrendPoint(
            row.score,
            row.passed,
            f"{row.node_id} #{row.run_number}",
            f"/runs/{row.run_id}/" if row.run_id else None,
            row.at,
            row.soul_version,
        )
        for row in rows
    ]
    return trend_chart(points, versions=_marks(rows), title=f"Score of the blocks that use {soul.slug}")


def _observations(blocks: list[tuple[Workflow, str]]) -> list[Observation]:
    """The newest of each block, in order of time."""
    wanted = {(workflow.pk, block) for workflow, block in blocks}
    known = BlockStatistics.objects.filter(workflow__in={key for key, _ in wanted})
    statistics = [
        row
        for row in known.only("workflow_id", "node_id", "count")
        if (row.workflow_id, row.node_id) in wanted
    ]
    rows = Observation.objects.newest(statistics, RUNS_OF_BLOCK).exclude(soul_version="").order_by("at", "id")
    return list(rows.defer("assertions", "named_scores"))


def _marks(rows: list[Observation]) -> list[VersionMark]:
    """Where a version is first seen; two that run side by side make no more marks."""
    seen: set[str] = set()
    marks = []
    for index, row in enumerate(rows):
        if row.soul_version not in seen:
            if seen:
                marks.append(VersionMark(index, short_hash(row.soul_version)))
            seen.add(row.soul_version)
    return marks
