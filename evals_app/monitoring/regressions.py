"""Regressions as pages, the API and events show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.text import Truncator

from evals_app.block_metrics import AMOUNTS
from evals_app.evidence.model import METRIC_OF_KIND
from evals_app.models import QUALITY_KINDS, Regression, RegressionKind, RegressionState
from workflows_app.display import formats
from workflows_app.display.formats import iso
from workflows_app.models import RunNode, SoulVersion

LONGEST_NAME = 60  # in a sentence
# What people call each kind, and how a sentence about it begins.
KINDS: dict[str, tuple[str, str]] = {
    RegressionKind.ASSERTION: ("Assertion regression", "`{assertion}` passed"),
    RegressionKind.QUALITY: ("Quality drop", "score was"),
    RegressionKind.COST: ("Cost spike", "cost was"),
    RegressionKind.LATENCY: ("Latency spike", "took"),
}
KIND_WORDS = {kind: label for kind, (label, _) in KINDS.items()}
# Nats: what opens a regression is about eight; a difference of three standard errors is four and a half.
STRONG, FAIR, WEAK = 12.0, 6.0, 2.0


def evidence_word(nats: float) -> str:
    """How strong the evidence is, in a word."""
    for bar, word in ((STRONG, "strong"), (FAIR, "fair"), (WEAK, "weak")):
        if nats >= bar:
            return word
    return "none"


def metric_of(regression: Regression) -> str:
    """The metric that became worse."""
    is_tokens = regression.before.get("unit") == "tokens"
    return "tokens" if is_tokens else METRIC_OF_KIND[regression.kind]


def kinds_of(metric: str) -> frozenset[RegressionKind]:
    """The kinds of regression that concern a metric; pass rate and named metrics are about quality."""
    if metric not in AMOUNTS:
        return QUALITY_KINDS
    return frozenset({RegressionKind.LATENCY if metric == "latency" else RegressionKind.COST})


def regression_summary(regression: Regression) -> dict[str, Any]:
    """A regression as the API and events show it."""
    return {
        "id": str(regression.pk),
        "workflow": regression.workflow.slug,
        "node_id": regression.node_id,
        "kind": regression.kind,
        "assertion": regression.assertion or None,
        "state": regression.state,
        "since_run": regression.since_run_number,
        "found_run": regression.found_run_number,
        "suspected": regression.suspected,
        "before": regression.before,
        "after": regression.after,
        "evidence": regression.evidence,
        "found_at": iso(regression.found_at),
    }


def sentence(regression: Regression) -> str:
    """What became worse, from what to what, and since when."""
    assertion = _short(regression.assertion.partition("#")[0])
    subject = KINDS[regression.kind][1].format(assertion=assertion)
    metric = metric_of(regression)
    before, after = formats.distinguish(regression.before["mean"], regression.after["mean"], metric)
    unit = " tokens" if metric == "tokens" else ""
    when = "then" if regression.state == RegressionState.RESOLVED else "now"
    place = f"`{_short(regression.node_id)}` in {_short(regression.workflow.slug)}"
    return f"{place}: {subject} {before}{unit}, {when} {after}{unit} since {_since(regression)}"


def _since(regression: Regression) -> str:
    """The run at which it began, and the version if that began there; else the version is only suspected."""
    run = f"run #{regression.since_run_number}" if regression.since_run_number else "recently"
    suspected = regression.suspected or {}
    version, soul = suspected.get("workflow_version"), suspected.get("soul_version")
    cause = f"version {version}" if version else f"soul version {_short(soul)}" if soul else ""
    if not cause:
        return run
    if _began_with_suspect(regression):
        return f"{cause}, {run}"
    return f"{run}; {cause} (from run #{suspected['from_run']}) is suspected"


def _began_with_suspect(regression: Regression) -> bool:
    return (regression.suspected or {}).get("from_run") in (None, regression.since_run_number)


def _short(name: str) -> str:
    return Truncator(name).chars(LONGEST_NAME)


@dataclass(frozen=True)
class RegressionRow:
    """A regression in a list, with its sentence and what it links to."""

    row: Regression
    soul: str = ""  # of the library, where a version of it is suspected

    @property
    def sentence(self) -> str:
        return sentence(self.row)

    @property
    def is_over(self) -> bool:
        return self.row.state == RegressionState.RESOLVED

    @property
    def is_cause_known(self) -> bool:
        return _began_with_suspect(self.row)

    @property
    def suspected_version(self) -> int | None:
        return (self.row.suspected or {}).get("workflow_version")

    @property
    def soul_version(self) -> str:
        return _soul_version(self.row)

    @property
    def evidence(self) -> str:
        return evidence_word(self.row.evidence)


def regression_rows(rows: Iterable[Regression]) -> list[RegressionRow]:
    """Regressions with the souls that are suspected; at most two queries for all of them."""
    found = list(rows)
    souls = _suspected_souls([row for row in found if _soul_version(row) and row.found_run_id])
    return [RegressionRow(row, souls.get(row, "")) for row in found]


def _soul_version(row: Regression) -> str:
    return (row.suspected or {}).get("soul_version") or ""


def _suspected_souls(rows: list[Regression]) -> dict[Regression, str]:
    """The soul of each block, where it is one of the library's; a document's own has no page."""
    if not rows:
        return {}
    nodes = RunNode.objects.filter(
        run__in={row.found_run_id for row in rows}, node_id__in={row.node_id for row in rows}
    ).exclude(soul_id="")
    used: dict[tuple[UUID | None, str], str] = {
        (run, node): soul for run, node, soul in nodes.values_list("run_id", "node_id", "soul_id")
    }
    versions = SoulVersion.objects.filter(
        soul__slug__in=set(used.values()), version__in={_soul_version(row) for row in rows}
    )
    known = set(versions.values_list("soul__slug", "version"))
    souls = {row: used.get((row.found_run_id, row.node_id), "") for row in rows}
    return {row: soul for row, soul in souls.items() if (soul, _soul_version(row)) in known}
