"""How the blocks that use a soul did, version by version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.safestring import SafeString

from evals_app.charts import TrendPoint, VersionMark, trend_chart
from evals_app.models import BlockStatistics, Observation
from workflows_app.models import Soul, Workflow
from workflows_app.soul_usage import Use
from workflows_app.summaries import iso

MOST_VERSIONS = 200
MOST_BLOCKS = 20  # drawn in one chart
RUNS_OF_BLOCK = 100


def history(soul: Soul) -> list[dict[str, Any]]:
    """Its versions, newest first, with scores summed over every block that used them.

    Reads the blocks' running totals, so it costs the same however many runs there were.
    """
    versions = list(soul.versions.select_related("author")[:MOST_VERSIONS])
    totals: dict[str, _Total] = {row.version: _Total() for row in versions}
    for slices in BlockStatistics.objects.values_list("slices__soul_version", flat=True):
        for version, row in (slices or {}).items():
            if version in totals:
                totals[version].add(row)
    return [
        {
            "version": row.version,
            "created_at": iso(row.created_at),
            "author": row.author.get_username() if row.author else None,
            "definition": row.definition,
            **totals[row.version].to_dict(),
        }
        for row in versions
    ]


class _Total:
    """Running totals of several blocks added up."""

    def __init__(self) -> None:
        self.runs = self.graded = self.passed = 0
        self.sums: dict[str, tuple[int, float]] = {}

    def add(self, row: dict[str, Any]) -> None:
        self.runs += row["count"]
        self.graded += row["graded"]
        self.passed += row["passed"]
        for metric in ("score", "cost", "latency"):
            if metric in row:
                count, mean = row[metric][:2]
                known = self.sums.get(metric, (0, 0.0))
                self.sums[metric] = (known[0] + count, known[1] + count * mean)

    def mean(self, metric: str) -> float | None:
        count, total = self.sums.get(metric, (0, 0.0))
        return total / count if count else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "mean_score": self.mean("score"),
            "pass_rate": self.passed / self.graded if self.graded else None,
            "mean_cost_usd": self.mean("cost"),
            "mean_latency_ms": self.mean("latency"),
        }


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
                marks.append(VersionMark(index, row.soul_version[:7]))
            seen.add(row.soul_version)
    return marks
