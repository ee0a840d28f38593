"""The kept state: replayed, saved, restored and bounded."""

import json
from dataclasses import asdict

import pytest

from evals_app.evidence.block import BlockEvidence
from evals_app.evidence.model import Observed, RegressionChange
from tests.evals.evidence.streams import block_runs, feed
from workflows_app.engine.definition import EvidenceSettings


def dumped(evidence: BlockEvidence) -> str:
    return json.dumps(evidence.to_state(), separators=(",", ":"))


def eventful_runs() -> list[Observed]:
    """Stable, much worse in everything, then stable again."""
    stable = block_runs(seed=3, count=120, pass_rate=0.95)
    worse = block_runs(seed=4, count=60, pass_rate=0.4, cost=2.0, latency=2.0, start=121, version=2)
    return [*stable, *worse, *block_runs(seed=5, count=120, pass_rate=0.95, start=181, version=3)]


def test_replaying_the_same_runs_gives_the_same_bytes() -> None:
    first, second = BlockEvidence(), BlockEvidence()
    assert feed(first, eventful_runs()) == feed(second, eventful_runs())
    assert dumped(first) == dumped(second)


def test_saving_and_restoring_after_every_run_changes_nothing() -> None:
    kept, changes = BlockEvidence(), []
    saved, saved_changes = "null", []
    for run in eventful_runs():
        changes += kept.update(run)
        restored = BlockEvidence.from_state(json.loads(saved))
        saved_changes += restored.update(run)
        saved = dumped(restored)
        assert saved == dumped(kept), run.number
    assert saved_changes == changes
    assert {change.kind for change in changes} >= {"opened", "closed"}


def test_the_state_stays_small_however_many_runs() -> None:
    evidence = BlockEvidence()
    sizes = []
    for run in block_runs(seed=6, count=1500, pass_rate=0.9):
        evidence.update(run)
        if run.number % 500 == 0:
            sizes.append(len(dumped(evidence)))
    assert max(sizes) < 14_000
    assert sizes[-1] < sizes[0] * 1.1


def test_the_state_stays_small_while_everything_is_worse() -> None:
    evidence = BlockEvidence()
    feed(evidence, block_runs(seed=7, count=400, pass_rate=0.95))
    feed(evidence, block_runs(seed=8, count=300, pass_rate=0.2, cost=2.0, latency=2.0, start=401))
    assert set(evidence.reported) == {"assertion_regression", "quality_drop", "cost_spike", "latency_spike"}
    assert len(dumped(evidence)) < 20_000


def test_assertions_that_are_no_longer_checked_leave_the_state() -> None:
    evidence = BlockEvidence()
    for number in range(1, 301):
        evidence.update(Observed(number, assertions={f"contains#{number // 30}": True}))
    assert len(evidence.to_state()["assertions"]) <= 2


def test_a_state_of_another_format_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="rebuild_statistics"):
        BlockEvidence.from_state({"format": 99})


def test_a_change_can_be_stored_as_json() -> None:
    changes: list[RegressionChange] = feed(BlockEvidence(EvidenceSettings()), eventful_runs())
    suspected = json.loads(json.dumps([asdict(change) for change in changes]))[0]["suspected"]
    assert suspected["workflow_version"] == 2
