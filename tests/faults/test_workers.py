"""Several workers on PostgreSQL with a real broker: the lease is the truth about who owns a run."""

import os
from collections.abc import Iterator

import pytest

from workflows_app.executors import OVERDUE_SECONDS

SOAK = bool(os.environ.get("RUNSIGHT_SOAK"))


@pytest.fixture(params=["redis", "rabbitmq"])
def scaled_out(request: pytest.FixtureRequest, postgres_url: str, redis_url: str) -> Iterator[dict[str, str]]:
    """The environment of a scaled-out stack, with each broker in turn."""
    queue = postgres_url.rpartition("/")[2]
    broker = redis_url if request.param == "redis" else request.getfixturevalue("rabbitmq_url")
    yield {
        "DATABASE_URL": postgres_url,
        "REDIS_URL": redis_url,
        "CELERY_BROKER_URL": broker,
        "RUNSIGHT_EXECUTOR": "celery",
        "RUNSIGHT_QUEUE": queue,
        "RUNSIGHT_LEASE_SECONDS": "4",
    }
    if request.param == "rabbitmq":
        import kombu

        with kombu.Connection(broker) as connection:
            connection.default_channel.queue_delete(queue)


def test_runs_survive_killed_workers(play, scaled_out):
    report = play("worker_killed", size=50 if SOAK else 2, **scaled_out)
    assert report["completed"] == report["runs"]
    assert max(report["recovery_s"], default=0) < 30


def test_stopped_worker_leaves_at_once_and_another_goes_on(play, scaled_out):
    report = play("worker_stopped", **scaled_out)
    assert report["exit_code"] == 0
    assert report["completed"] == report["runs"], "a run failed because its worker was stopped"
    assert report["stop_s"] < 10
    assert max(report["takeovers"]) == 2, "no run was interrupted"


def test_message_brings_a_worker_at_once_and_does_nothing_when_it_comes_again(play, scaled_out):
    report = play("message_redelivered", **scaled_out)
    assert report["taken_s"] < OVERDUE_SECONDS / 2, "the run was found by the sweep, not by its message"
    assert report["fences"] == [1, 1]


@pytest.mark.parametrize("scaled_out", ["rabbitmq"], indirect=True)
def test_run_is_cancelled_from_another_process(play, scaled_out):
    assert play("cancelled", **scaled_out)["statuses"] == ["cancelled"]
