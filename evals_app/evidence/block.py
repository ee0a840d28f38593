"""All tests of one block together: one alarm budget, one regression per kind."""

from dataclasses import astuple, replace
from math import isfinite, log
from typing import Any

from evals_app.evidence.measures import Latency, Measure, Score
from evals_app.evidence.model import (
    METRICS,
    REGRESSION_KINDS,
    Baseline,
    Change,
    ChangeKind,
    Observed,
    RegressionKind,
    Sensitivity,
    Settings,
    State,
    Suspect,
    Verdict,
)
from evals_app.evidence.passes import Passes
from evals_app.evidence.series import Opened, Series

# Nats of evidence that one of nine tests needs; chosen on other seeds than `benchmarks/evidence.py` reports on.
BARS: dict[Sensitivity, float] = {"low": 12.75, "normal": 9.75, "high": 7.75}
TESTS = 9
SMALLEST_CHANGE = {"score": 0.01, "cost": 0.05, "latency": 0.15, "tokens": 0.05}
FORGET_AFTER = 20  # runs after which what is no longer checked or measured is dropped
MOST_ASSERTIONS = 200
VERSIONS_KEPT = 8
NEWS = 20  # a level is told anew with every run, from twice as many on with a twentieth more of them
FORMAT = 1
PREFIX = "assertion:"


class BlockEvidence:
    """Constant-size, JSON-able evidence about one block of one workflow."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.number = 0
        self.metrics = {name: _new_metric(name) for name in METRICS}
        self.assertions: dict[str, Passes] = {}
        self.version: tuple[int, str | None] | None = None
        self.version_changes: list[Suspect] = []
        # What was last told of each kind: its members, strongest first, and the evidence then.
        self.told: dict[str, tuple[list[str], float]] = {}

    def update(self, observed: Observed) -> list[Change]:
        """Take one more run and answer what it changed: nothing, as long as nothing is open."""
        self.number = observed.number
        self._note_version(observed)
        values = {name: value for name in METRICS if (value := _value(observed, name)) is not None}
        # Tokens count whether or not they stand in for the cost: so the bars were chosen.
        tests = sum(name not in self.settings.ignore for name in values)
        tests += sum(map(self._is_watched, observed.assertions))
        bar = BARS[self.settings.sensitivity] + log(max(tests, 1) / TESTS)
        leaving = self._open_series()
        for name, value in values.items():
            self._take(self.metrics[name], observed.number, value, bar if self._is_tested(name) else None)
        for key in sorted(observed.assertions)[:MOST_ASSERTIONS]:
            series = self.assertions.get(key)
            if series is None:
                series = self.assertions[key] = Passes()
            passed = float(observed.assertions[key])
            self._take(series, observed.number, passed, bar if self._is_watched(key) else None)
        self._forget_unseen()
        return self._changes(leaving)

    def verdicts(self) -> dict[str, Verdict]:
        """The state of every metric, every assertion (`assertion:<key>`) and, as `overall`, of the block."""
        verdicts = {name: self._verdict(series) for name, series in self._watched_series().items()}
        count = max((verdict.count for verdict in verdicts.values()), default=0)
        order: tuple[State, ...] = ("worse", "better", "no evidence of change", "too few runs")
        states = {verdict.state for verdict in verdicts.values()}
        state: State = next((each for each in order if each in states), "too few runs")
        return {"overall": Verdict(state, count, self.settings.min_runs), **verdicts}

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
            "told": {kind: [list(names), evidence] for kind, (names, evidence) in sorted(self.told.items())},
            "metrics": {name: series.to_state() for name, series in self.metrics.items() if series.count},
            "assertions": {key: series.to_state() for key, series in sorted(self.assertions.items())},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any] | None, settings: Settings | None = None) -> "BlockEvidence":
        """Go on from what `to_state` gave; None begins anew."""
        evidence = cls(settings)
        if not state:
            return evidence
        if state.get("format") != FORMAT:
            raise ValueError(
                f"Evidence state has format {state.get('format')!r}, this version reads {FORMAT}: "
                "run rebuild_statistics."
            )
        evidence.number = state["number"]
        evidence.version = tuple(state["version"]) if state["version"] else None
        evidence.version_changes = [Suspect(*change) for change in state["version_changes"]]
        evidence.told = {kind: (list(names), weight) for kind, (names, weight) in state["told"].items()}
        for name, saved in state["metrics"].items():
            evidence.metrics[name].restore(saved)
        for key, saved in state["assertions"].items():
            series = evidence.assertions[key] = Passes()
            series.restore(saved)
        return evidence

    def _take(self, series: Series, number: int, value: float, bar: float | None) -> None:
        """Test a series, or only measure it where there is no bar: nobody could see or resolve what it opened."""
        if bar is None:
            series.record(number, value)
        else:
            series.observe(number, value, bar, self.settings.min_runs)

    def _is_watched(self, key: str) -> bool:
        return "assertions" not in self.settings.ignore and key not in self.settings.ignore

    def _is_tested(self, metric: str) -> bool:
        return metric not in self.settings.ignore and (metric != "tokens" or self._tokens_stand_in())

    def _all_series(self) -> dict[str, Series]:
        named: dict[str, Series] = dict(self.metrics)
        named.update({f"{PREFIX}{key}": series for key, series in sorted(self.assertions.items())})
        return named

    def _watched_series(self) -> dict[str, Series]:
        ignored = {name for name in METRICS if not self._is_tested(name)}
        ignored |= {f"{PREFIX}{key}" for key in self.assertions if not self._is_watched(key)}
        return {name: each for name, each in self._all_series().items() if each.count and name not in ignored}

    def _verdict(self, series: Series) -> Verdict:
        needed = self.settings.min_runs
        state: State = "no evidence of change"
        if series.opened is not None:
            state = "worse"
        elif series.count < needed:
            state = "too few runs"
        elif series.is_better:
            state = "better"
        return Verdict(state, series.count, needed)

    def _note_version(self, observed: Observed) -> None:
        version = (observed.workflow_version, observed.soul_version)
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
                self.metrics[name] = _new_metric(name)

    def _is_unseen(self, series: Series) -> bool:
        return self.number - series.seen >= FORGET_AFTER

    def _tokens_stand_in(self) -> bool:
        """Tokens speak for the cost while the cost is not known."""
        cost = self.metrics["cost"]
        return cost.count < self.settings.min_runs or self._is_unseen(cost)

    def _members(self, kind: RegressionKind) -> dict[str, Series]:
        if kind == "assertion_regression":
            return {f"{PREFIX}{key}": each for key, each in self.assertions.items() if self._is_watched(key)}
        elif kind == "quality_drop":
            name = "score"
        elif kind == "latency_spike":
            name = "latency"
        else:
            name = "tokens" if self._tokens_stand_in() else "cost"
        return {} if name in self.settings.ignore else {name: self.metrics[name]}

    def _open_series(self) -> dict[str, Opened]:
        """What is open before a run is taken, so that what it closes can still be described."""
        return {name: each.opened for name, each in self._all_series().items() if each.opened is not None}

    def _changes(self, leaving: dict[str, Opened]) -> list[Change]:
        return [change for kind in REGRESSION_KINDS if (change := self._change(kind, leaving)) is not None]

    def _change(self, kind: RegressionKind, leaving: dict[str, Opened]) -> Change | None:
        opened = {name: each.opened for name, each in self._members(kind).items() if each.opened is not None}
        names = sorted(opened, key=lambda name: (-opened[name].evidence, name))
        told, told_evidence = self.told.get(kind, ([], 0.0))
        if not names and not told:
            return None
        if not names:
            del self.told[kind]
            last = next((name for name in told if name in leaving), None)
            if last is None:
                return None
            return replace(
                self._describe("closed", kind, told, leaving[last]), after=leaving[last].while_worse
            )
        strongest = opened[names[0]]
        how: ChangeKind = "strengthened"
        if not told:
            how = "opened"
        elif set(names) < set(told):
            how = "weakened"
        elif set(names) == set(told) and strongest.evidence < 2 * told_evidence:
            return self._continued(kind, told, opened[told[0]])
        self.told[kind] = (names, strongest.evidence)
        return self._describe(how, kind, names, strongest)

    def _continued(self, kind: RegressionKind, told: list[str], opened: Opened) -> Change | None:
        """What was told, as it is after this run; None where the run says nothing about it, or one of many little."""
        is_seen = self._members(kind)[told[0]].seen == self.number
        is_due = opened.after_count % max(1, opened.after_count // NEWS) == 0
        return self._describe("continued", kind, told, opened) if is_seen and is_due else None

    def _describe(self, how: ChangeKind, kind: RegressionKind, names: list[str], opened: Opened) -> Change:
        is_assertion = kind == "assertion_regression"
        keys = [name.removeprefix(PREFIX) for name in names]
        return Change(
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


def _new_metric(name: str) -> Measure:
    tests: dict[str, type[Measure]] = {"score": Score, "latency": Latency}
    return tests.get(name, Measure)(SMALLEST_CHANGE[name])


def _value(observed: Observed, name: str) -> float | None:
    """The measured number to six digits, which keeps the state small; None where there is none."""
    value = {
        "score": observed.score,
        "cost": observed.cost_usd,
        "latency": observed.latency_ms,
        "tokens": observed.tokens,
    }[name]
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.6g}")
