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
    report = play("server_killed", 10 if SOAK else 1, FAULT_SERVERS=servers, FAULT_VICTIM=victim, **CELERY)
    assert report["completed"] == report["runs"], report["failures"]


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param({}, id="one process"),
        pytest.param(SCALED_OUT, id="scaled out", marks=pytest.mark.needs("postgres", "redis")),
    ],
)
def test_viewer_of_a_killed_server_ends_up_with_the_full_history(play, stack):
    report = play("web_killed", 40 if SOAK else 1, **stack)
    assert report["completed"] == report["runs"], report["failures"]
    assert (report["viewer_lost"], report["viewer_doubled"]) == ([], 0)
    assert report["reconnects"] >= 1


def test_full_disk_stops_a_run_only_until_there_is_room(play):
    report = play("disk_full")
    assert report["survived"]
    assert report["completed"] == report["runs"], report["failures"]


def test_hanging_model_fails_its_own_runs_only(play):
    report = play("provider_hangs")
    assert report["statuses"] == ["cancelled", "failed", "failed"]
    assert report["errors"] == [None, "timeout", "timeout"]


@pytest.mark.needs("postgres", "redis")
@pytest.mark.parametrize("scenario", ["clock_jumped", "clock_of_a_worker_jumped"])
def test_clock_that_jumps_an_hour_loses_nothing(play, scenario):
    report = play(scenario, 5 if SOAK else 1, **SCALED_OUT)
    assert report["completed"] == report["runs"], report["failures"]
    assert max(report["recovery_s"]) < 60


@pytest.mark.needs("postgres", "redis")
def test_runs_of_a_lost_host_go_on_when_their_lease_is_over(play):
    report = play("host_lost", 5 if SOAK else 1, **SCALED_OUT)
    assert report["completed"] == report["runs"], report["failures"]
    assert max(report["recovery_s"]) < 20


@pytest.mark.needs("postgres", "redis")
def test_old_worker_beside_a_new_schema_loses_nothing(play):
    report = play("schema_changed", **SCALED_OUT)
    assert report["completed"] == report["runs"], report["failures"]
    assert report["survived"] and report["unfinished"]
