"""After any fault: every accepted run ends, nothing is lost or doubled, and no process is left over.

The short form is part of every test run; `make soak` plays the same scenarios for hundreds of kills.
"""

import os

import pytest

SOAK = bool(os.environ.get("RUNSIGHT_SOAK"))
CELERY = {"RUNSIGHT_EXECUTOR": "celery", "RUNSIGHT_LEASE_SECONDS": "4"}
SCALED_OUT = {"FAULT_SERVERS": "redis,postgres", **CELERY}


@pytest.mark.needs("postgres", "redis")
@pytest.mark.parametrize(
    ("victim", "servers"),
    [
        ("redis", "redis,postgres"),
        ("postgres", "redis,postgres"),
        pytest.param("rabbitmq", "redis,postgres,rabbitmq", marks=pytest.mark.needs("rabbitmq")),
    ],
)
def test_runs_survive_the_death_of_a_server(play, victim, servers):
    told = play("server_killed", 10 if SOAK else 1, FAULT_SERVERS=servers, FAULT_VICTIM=victim, **CELERY)
    assert told["completed"] == told["runs"], told["failures"]


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param({}, id="one process"),
        pytest.param(SCALED_OUT, id="scaled out", marks=pytest.mark.needs("postgres", "redis")),
    ],
)
def test_viewer_of_a_killed_server_ends_up_with_the_full_history(play, stack):
    told = play("web_killed", 40 if SOAK else 1, **stack)
    assert told["completed"] == told["runs"], told["failures"]
    assert (told["viewer_lost"], told["viewer_doubled"]) == ([], 0)
    assert told["reconnects"] >= 1


def test_full_disk_stops_a_run_only_until_there_is_room(play):
    told = play("disk_full")
    assert told["is_stuck"] and told["survived"]
    assert told["completed"] == told["runs"], told["failures"]


def test_hanging_model_fails_its_own_runs_only(play):
    told = play("provider_hangs")
    assert told["statuses"] == ["cancelled", "failed", "failed"]
    assert told["errors"] == [None, "timeout", "timeout"]


@pytest.mark.needs("postgres", "redis")
@pytest.mark.parametrize("scenario", ["clock_jumped", "clock_of_a_worker_jumped"])
def test_clock_that_jumps_an_hour_loses_nothing(play, scenario):
    told = play(scenario, 5 if SOAK else 1, **SCALED_OUT)
    assert told["completed"] == told["runs"], told["failures"]
    assert max(told["recovery_s"]) < 60


@pytest.mark.needs("postgres", "redis")
def test_runs_of_a_lost_host_go_on_when_their_lease_is_over(play):
    told = play("host_lost", 5 if SOAK else 1, **SCALED_OUT)
    assert told["completed"] == told["runs"], told["failures"]
    assert max(told["recovery_s"]) < 20


@pytest.mark.needs("postgres", "redis")
def test_old_worker_beside_a_new_schema_loses_nothing(play):
    told = play("schema_changed", **SCALED_OUT)
    assert told["completed"] == told["runs"], told["failures"]
    assert told["survived"] and told["unfinished"]
