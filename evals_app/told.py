"""Regressions as pages tell them: the sentence, and links to what they speak of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals_app.effects import evidence_word
from evals_app.models import Regression, RegressionState
from evals_app.regressions import sentence
from workflows_app.models import RunNode, SoulVersion


@dataclass(frozen=True)
class Told:
    """A regression and the sentence that matters about it."""

    row: Regression
    soul: str = ""  # of the library, where a version of it is suspected

    @property
    def sentence(self) -> str:
        return sentence(self.row, self.row.workflow.slug)

    @property
    def is_over(self) -> bool:
        return self.row.state == RegressionState.RESOLVED

    @property
    def suspected_version(self) -> int | None:
        return (self.row.suspected or {}).get("workflow_version")

    @property
    def soul_version(self) -> str:
        return _soul_version(self.row)

    @property
    def evidence(self) -> str:
        return evidence_word(self.row.evidence)


def tell(rows: Iterable[Regression]) -> list[Told]:
    """Regressions with the souls to suspect; at most two queries for all of them."""
    found = list(rows)
    souls = _suspected_souls([row for row in found if _soul_version(row) and row.found_run_id])
    return [Told(row, souls.get(row, "")) for row in found]


def _soul_version(row: Regression) -> str:
    return (row.suspected or {}).get("soul_version") or ""


def _suspected_souls(rows: list[Regression]) -> dict[Regression, str]:
    """The soul that each block asked, where it is one of the library's; a document's own has no page."""
    if not rows:
        return {}
    nodes = RunNode.objects.filter(
        run__in={row.found_run_id for row in rows}, node_id__in={row.node_id for row in rows}
    )
    asked = {
        (str(run), node): soul
        for run, node, soul in nodes.values_list("run_id", "node_id", "soul_id")
        if soul
    }
    versions = SoulVersion.objects.filter(
        soul__slug__in=set(asked.values()), version__in={_soul_version(row) for row in rows}
    )
    known = set(versions.values_list("soul__slug", "version"))
    souls = {row: asked.get((str(row.found_run_id), row.node_id), "") for row in rows}
    return {row: soul for row, soul in souls.items() if (soul, _soul_version(row)) in known}
