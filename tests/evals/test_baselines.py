"""How a node differs from what is normal."""

from evals_app.baselines import Measured, delta_of


def test_a_delta_counts_the_runs_that_each_figure_rests_on() -> None:
    usual = {"count": 40, "mean": 1.0, "low": None, "high": None}
    found = delta_of(
        Measured(0.5, 0.02, 900.0, None),
        {"score": usual, "cost": usual | {"count": 100}, "assertion:is-json#0": usual | {"count": 7}},
    )
    assert found is not None
    assert found["baseline_counts"] == {"score": 40, "cost": 100}
    assert found["baseline_run_count"] == 100
