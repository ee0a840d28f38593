"""What Prometheus reads, and who may ask."""

import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evals_app.assertions import AssertionContext, run_assertion
from tests.callers import caller
from tests.factories import finish, make_workflow
from tests.faults.stack import PROJECT
from tests.timing import wait_until
from workflows_app import services
from workflows_app.models import Run, RunStatus


def samples(text: str) -> dict[str, float]:
    """Every sample by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def scraped() -> dict[str, float]:
    response = caller("viewer").get("/metrics")
    assert response.status_code == 200
    return samples(response.content.decode())


def test_a_run_and_its_evaluation_are_counted(executor):
    before = scraped()
    finish(services.start_run(make_workflow()))
    after = scraped()

    def grew(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert grew("runsight_runs_ended_total{status=completed}") == 1
    assert grew("runsight_queue_delay_seconds_count") == 1
    assert grew("runsight_evaluation_seconds_count") == 1
    assert grew("runsight_runs_recent{status=completed}") == 1
    assert after["runsight_runs{status=running}"] == 0


@pytest.mark.django_db
def test_waiting_runs_are_counted_with_the_age_of_the_oldest():
    workflow = make_workflow()
    run = services.start_run(workflow)
    services.start_run(workflow)
    Run.objects.filter(pk=run.pk).update(created_at=run.created_at.replace(year=run.created_at.year - 1))
    values = scraped()
    assert values["runsight_runs{status=pending}"] == 2
    assert values[f"runsight_runs_recent{{status={RunStatus.PENDING}}}"] == 1
    assert values["runsight_oldest_pending_seconds"] > 86_400 * 364


@pytest.mark.django_db
def test_stopped_patterns_are_counted():
    before = scraped()["runsight_slow_patterns_stopped_total"]
    run_assertion({"type": "regex", "value": "(a|aa)+$"}, AssertionContext(output="a" * 60 + "b"))
    assert scraped()["runsight_slow_patterns_stopped_total"] == before + 1


@pytest.mark.django_db
def test_scrape_reads_no_more_with_more_runs(django_assert_max_num_queries):
    client = caller("viewer")
    client.get("/metrics")
    with django_assert_max_num_queries(8):
        client.get("/metrics")


def test_worker_serves_its_own_on_a_port(clean_environment, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**clean_environment, "PYTHONPATH": str(PROJECT)}
    runsight = [sys.executable, "-m", "runsight_site"]
    subprocess.run([*runsight, "migrate", "-v0"], env=environment, cwd=PROJECT, check=True)
    with Path(tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [*runsight, "worker", "--metrics-port", str(port)], env=environment, cwd=PROJECT, stderr=log
        )
    try:
        wait_until(lambda: "worker is ready" in (tmp_path / "log").read_text(), "the worker is ready")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert re.search(r"^runsight_takeovers_total 0\.0$", answer.read().decode(), re.M)
    finally:
        worker.terminate()
        assert worker.wait(20) == 0
