"""How a node differs from what is normal."""

from evals_app.monitoring.baselines import delta_of


def test_a_delta_counts_the_runs_that_each_figure_rests_on() -> None:
    normal = {"count": 40, "mean": 1.0, "low": None, "high": None}
    found = delta_of(
        {"score": 0.5, "cost": 0.02, "latency": 900.0, "tokens": None},
        {"score": normal, "cost": normal | {"count": 100}, "assertion:is-json#0": normal | {"count": 7}},
    )
    assert found is not None
    assert found["baseline_counts"] == {"score": 40, "cost": 100}
    assert found["baseline_run_count"] == 100
