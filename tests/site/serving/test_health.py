"""Liveness, readiness, and that everything else asks for a log-in."""

from typing import Any

import pytest
from django.db import connections
from django.test import Client

from workflows_app import executors


def test_healthz_answers_without_log_in_and_without_database(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok")


@pytest.mark.django_db(transaction=True)
def test_readyz_names_each_part_without_log_in(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["database"] == response.json()["channel_layer"] == "ok"


@pytest.mark.django_db(transaction=True)
def test_readyz_is_503_when_the_database_does_not_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError("no database")

    monkeypatch.setattr(type(connections["default"]), "cursor", refuse)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["database"] == "failed: OSError"
    assert response.json()["channel_layer"] == "ok"


@pytest.mark.parametrize("path", ["/admin/", "/admin/auth/user/"])
@pytest.mark.django_db
def test_pages_send_a_stranger_to_the_log_in(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 302
    assert "/login/" in response.headers["Location"]


@pytest.mark.django_db(transaction=True)
def test_readyz_is_503_when_nobody_executes_runs(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "current", None)  # what the check makes is forgotten with the test
    assert client.get("/readyz").json()["executor"] == "in other processes"
    settings.RUNSIGHT_EXECUTOR = "local"
    response = client.get("/readyz")
    assert (response.status_code, response.json()["executor"]) == (503, "failed: not running")


def test_readyz_sees_the_executor_of_its_process(executor: Any, client: Client, settings: Any) -> None:
    settings.RUNSIGHT_EXECUTOR = "local"
    response = client.get("/readyz")
    assert (response.status_code, response.json()["executor"]) == (200, "ok")
