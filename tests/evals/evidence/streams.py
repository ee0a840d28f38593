"""Simulated runs of one block, the same for the same seed."""

import random
from math import exp

from evals_app.evidence.block import BlockEvidence
from evals_app.evidence.model import Observed, RegressionChange


def block_runs(
    *,
    seed: int,
    count: int,
    pass_rate: float = 0.95,
    cost: float = 1.0,
    latency: float = 1.0,
    start: int = 1,
    version: int = 1,
    soul: str | None = "soul-a",
    slow_share: float = 0.0,
) -> list[Observed]:
    """Runs of a block with five assertions; cost, latency and tokens with 15 % noise."""
    rng = random.Random(seed)

    def noisy(mean: float) -> float:
        return mean * exp(rng.gauss(0.0, 0.15))

    runs = []
    for number in range(start, start + count):
        assertions = {f"contains#{index}": rng.random() < pass_rate for index in range(5)}
        slow = 10.0 if rng.random() < slow_share else 1.0
        runs.append(
            Observed(
                number=number,
                score=sum(assertions.values()) / 5,
                passed=all(assertions.values()),
                cost_usd=noisy(0.01) * cost,
                latency_ms=noisy(800.0) * latency * slow,
                tokens=round(noisy(500.0)),
                assertions=assertions,
                workflow_version=version,
                soul_version=soul,
            )
        )
    return runs


def feed(evidence: BlockEvidence, runs: list[Observed]) -> list[RegressionChange]:
    """Every change that these runs made."""
    return [change for run in runs for change in evidence.update(run)]
