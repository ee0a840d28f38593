"""All tests of one block together: one alarm budget, one regression per kind."""

import struct
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import partial
from math import isfinite, log
from typing import Any

from evals_app.block_metrics import MEASURED, observed_values
from evals_app.evidence.measures import Latency, Measure, Score
from evals_app.evidence.model import (
    METRIC_OF_KIND,
    REGRESSION_KINDS,
    Baseline,
    ChangeKind,
    EvidenceVerdict,
    Observed,
    RegressionChange,
    RegressionKind,
    State,
    Suspect,
)
from evals_app.evidence.passes import Passes
from evals_app.evidence.series import Opened, Series
from workflows_app.engine.definition import EvidenceSettings

# Nats of evidence that one of nine tests needs; chosen on other seeds than `benchmarks/evidence.py` reports on.
BARS = {"low": 12.75, "normal": 9.75, "high": 7.75}
TESTS = 9
# The test of each metric, and the smallest change that it looks for.
MEASURES: dict[str, Callable[[], Measure]] = {
    "score": partial(Score, 0.01),
    "cost": partial(Measure, 0.05),
    "latency": partial(Latency, 0.15),
    "tokens": partial(Measure, 0.05),
}
FORGET_AFTER = 20  # runs after which what is no longer checked or measured is dropped
MOST_ASSERTIONS = 200
VERSIONS_KEPT = 8
NEWS = 20  # a level is reported again with every run, from twice as many on with a twentieth more of them
FORMAT = 1
PREFIX = "assertion:"


class UnreadableState(ValueError):
    """A saved state that another version wrote; `rebuild_statistics` makes it again from the observations."""


class BlockEvidence:
    """Constant-size, JSON-able evidence about one block of one workflow."""

    def __init__(self, settings: EvidenceSettings | None = None) -> None:
        self.settings = settings or EvidenceSettings()
        self.number = 0
        self.metrics = {name: MEASURES[name]() for name in MEASURED}
        self.assertions: dict[str, Passes] = {}
        self.version: tuple[int, str | None] | None = None
        self.version_changes: list[Suspect] = []
        # The last report of each kind: its members, strongest first, and the evidence then.
        self.reported: dict[str, tuple[list[str], float]] = {}

    def update(self, observed: Observed) -> list[RegressionChange]:
        """Add one more run; the changes it made to what is worse."""
        self.number = observed.number
        self._note_version(observed)
        # To six digits, which keeps the state small.
        values = {
            name: float(f"{value:.6g}")
            for name, value in observed_values(observed).items()
            if value is not None and isfinite(value)
        }
        # Tokens count whether or not they stand in for the cost: the bars were chosen that way.
        tests = sum(name not in self.settings.ignore for name in values)
        tests += sum(map(self._is_checked, observed.assertions))
        bar = BARS[self.settings.sensitivity] + log(max(tests, 1) / TESTS)
        # What is open now, so that what this run closes can still be described.
        leaving = {name: each.opened for name, each in self._all_series().items() if each.opened is not None}
        for name, value in values.items():
            self._take(self.metrics[name], observed.number, value, bar if self._is_watched(name) else None)
        for key in sorted(observed.assertions)[:MOST_ASSERTIONS]:
            series = self.assertions.get(key) or self.assertions.setdefault(key, Passes())
            passed = float(observed.assertions[key])
            self._take(series, observed.number, passed, bar if self._is_checked(key) else None)
        self._forget_unseen()
        return [change for kind in REGRESSION_KINDS if (change := self._change(kind, leaving)) is not None]

    def verdicts(self) -> dict[str, EvidenceVerdict]:
        """The state of every metric, every assertion (`assertion:<key>`) and, as `overall`, of the block."""
        verdicts = {
            name: self._verdict(series)
            for name, series in self._all_series().items()
            if series.count and self._is_watched(name)
        }
        count = max((verdict.count for verdict in verdicts.values()), default=0)
        order: tuple[State, ...] = ("worse", "better", "no evidence of change", "too few runs")
        states = {verdict.state for verdict in verdicts.values()}
        state: State = next((each for each in order if each in states), "too few runs")
        return {"overall": EvidenceVerdict(state, count, self.settings.min_runs), **verdicts}

    def baseline(self) -> dict[str, Baseline]:
        """Normal for every metric and assertion (`assertion:<key>`) that was ever measured."""
        found = {name: series.baseline() for name, series in self._all_series().items()}
        return {name: baseline for name, baseline in found.items() if baseline is not None}

    def to_state(self) -> dict[str, Any]:
        """Everything, as JSON-able values of bounded size."""
        return {
            "format": FORMAT,
            "number": self.number,
            "version": list(self.version) if self.version else None,
            "version_changes": [list(astuple(change)) for change in self.version_changes],
            "reported": {
                kind: [list(names), evidence] for kind, (names, evidence) in sorted(self.reported.items())
            },
            "metrics": {name: series.to_state() for name, series in self.metrics.items() if series.count},
            "assertions": {key: series.to_state() for key, series in sorted(self.assertions.items())},
        }

    @classmethod
    def from_state(
        cls, state: dict[str, Any] | None, settings: EvidenceSettings | None = None
    ) -> "BlockEvidence":
        """Continue from a saved state; None begins with no evidence. Raises UnreadableState."""
        evidence = cls(settings)
        if not state:
            return evidence
        if state.get("format") != FORMAT:
            raise UnreadableState(
                f"Evidence state has format {state.get('format')!r}, this version reads {FORMAT}: "
                "run rebuild_statistics."
            )
        try:
            evidence._restore(state)
        except (LookupError, TypeError, ValueError, AttributeError, struct.error) as error:
            raise UnreadableState(
                f"Evidence state cannot be read ({error!r}): run rebuild_statistics."
            ) from error
        return evidence

    def _restore(self, state: dict[str, Any]) -> None:
        self.number = state["number"]
        self.version = tuple(state["version"]) if state["version"] else None
        self.version_changes = [Suspect(*change) for change in state["version_changes"]]
        reported = state["reported"] if "reported" in state else state["told"]  # its name until 2026
        self.reported = {kind: (list(names), nats) for kind, (names, nats) in reported.items()}
        for name, saved in state["metrics"].items():
            self.metrics[name].restore(saved)
        for key, saved in state["assertions"].items():
            series = self.assertions[key] = Passes()
            series.restore(saved)

    def _take(self, series: Series, number: int, value: float, bar: float | None) -> None:
        """Test a series, or only measure it where there is no bar: nobody could see or resolve a change there."""
        if bar is None:
            series.record(number, value)
        else:
            series.observe(number, value, bar, self.settings.min_runs)

    def _is_checked(self, assertion: str) -> bool:
        return "assertions" not in self.settings.ignore and assertion not in self.settings.ignore

    def _is_watched(self, name: str) -> bool:
        if name.startswith(PREFIX):
            return self._is_checked(name.removeprefix(PREFIX))
        return name not in self.settings.ignore and (name != "tokens" or self._tokens_stand_in())

    def _all_series(self) -> dict[str, Series]:
        return self.metrics | {f"{PREFIX}{key}": each for key, each in sorted(self.assertions.items())}

    def _verdict(self, series: Series) -> EvidenceVerdict:
        needed = self.settings.min_runs
        state: State = "no evidence of change"
        if series.opened is not None:
            state = "worse"
        elif series.count < needed:
            state = "too few runs"
        elif series.is_better:
            state = "better"
        return EvidenceVerdict(state, series.count, needed)

    def _note_version(self, observed: Observed) -> None:
        version = (observed.workflow_version, observed.soul_version or None)
        if self.version is not None and version != self.version:
            change = Suspect(observed.number, *version, *self.version)
            self.version_changes = [*self.version_changes, change][-VERSIONS_KEPT:]
        self.version = version

    def _suspect(self, opened: Opened) -> Suspect | None:
        """The change of version nearest to the estimated start, if one is near.

        The longer the evidence took, the less exact the start is; and what breaks only now and then shows a while late.
        """
        after = min(30, max(5, (opened.found_at - opened.since) // 2))
        before = max(after, 15)
        near = [
            change
            for change in self.version_changes
            if opened.since - before <= change.number <= min(opened.since + after, opened.found_at)
        ]
        return min(near, key=lambda change: abs(change.number - opened.since), default=None)

    def _forget_unseen(self) -> None:
        for key in [key for key, each in self.assertions.items() if self._is_unseen(each)]:
            del self.assertions[key]
        for name, each in self.metrics.items():
            if each.count and self._is_unseen(each):
                self.metrics[name] = MEASURES[name]()

    def _is_unseen(self, series: Series) -> bool:
        return self.number - series.seen >= FORGET_AFTER

    def _tokens_stand_in(self) -> bool:
        """Tokens stand in for the cost while that is not known."""
        cost = self.metrics["cost"]
        return cost.count < self.settings.min_runs or self._is_unseen(cost)

    def _members(self, kind: RegressionKind) -> dict[str, Series]:
        if kind == "assertion_regression":
            return {f"{PREFIX}{key}": each for key, each in self.assertions.items() if self._is_checked(key)}
        name = "tokens" if kind == "cost_spike" and self._tokens_stand_in() else METRIC_OF_KIND[kind]
        return {} if name in self.settings.ignore else {name: self.metrics[name]}

    def _change(self, kind: RegressionKind, leaving: dict[str, Opened]) -> RegressionChange | None:
        opened = {name: each.opened for name, each in self._members(kind).items() if each.opened is not None}
        names = sorted(opened, key=lambda name: (-opened[name].evidence, name))
        reported, reported_evidence = self.reported.get(kind, ([], 0.0))
        if not names and not reported:
            return None
        if not names:
            del self.reported[kind]
            last = next((name for name in reported if name in leaving), None)
            if last is None:
                return None
            return replace(
                self._describe("closed", kind, reported, leaving[last]), after=leaving[last].while_worse
            )
        strongest = opened[names[0]]
        how: ChangeKind = "strengthened"
        if not reported:
            how = "opened"
        elif set(names) < set(reported):
            how = "weakened"
        elif set(names) == set(reported) and strongest.evidence < 2 * reported_evidence:
            return self._continued(kind, reported, opened[reported[0]])
        self.reported[kind] = (names, strongest.evidence)
        return self._describe(how, kind, names, strongest)

    def _continued(
        self, kind: RegressionKind, reported: list[str], opened: Opened
    ) -> RegressionChange | None:
        """The reported change after this run; None where the run did not measure it, or adds little to many."""
        is_seen = self._members(kind)[reported[0]].seen == self.number
        is_due = opened.after_count % max(1, opened.after_count // NEWS) == 0
        return self._describe("continued", kind, reported, opened) if is_seen and is_due else None

    def _describe(
        self, how: ChangeKind, kind: RegressionKind, names: list[str], opened: Opened
    ) -> RegressionChange:
        is_assertion = kind == "assertion_regression"
        keys = [name.removeprefix(PREFIX) for name in names]
        return RegressionChange(
            kind=how,
            regression_kind=kind,
            metric="assertion" if is_assertion else names[0],
            assertion=keys[0] if is_assertion else None,
            assertions=tuple(keys) if is_assertion else (),
            since_number=opened.since,
            before=opened.before,
            after=opened.after,
            evidence=opened.evidence,
            suspected=self._suspect(opened),
        )
