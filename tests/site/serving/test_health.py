"""Liveness, readiness, and that everything else asks for a log-in."""

import asyncio
from typing import Any

import pytest
import redis
from channels.layers import channel_layers, get_channel_layer
from django.db import connections
from django.test import Client, override_settings

from runsight_site.serving import health
from tests.callers import user_in
from workflows_app import executors


def test_healthz_answers_without_log_in_and_without_database(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok")


@override_settings(SECURE_SSL_REDIRECT=True)
@pytest.mark.django_db(transaction=True)
def test_health_answers_plainly_where_pages_are_sent_to_https(client: Client) -> None:
    assert [client.get(path).status_code for path in ("/healthz", "/readyz", "/login/")] == [200, 200, 301]


def test_readyz_leaves_no_subscription_behind(redis_url: str, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    channel_layers.backends.clear()
    try:
        with redis.Redis.from_url(redis_url) as client, asyncio.Runner() as runner:
            states = [runner.run(health.channel_layer_state()) for _ in range(3)]
            assert (states, client.pubsub_channels()) == (["ok"] * 3, [])
            runner.run(get_channel_layer().flush())
    finally:
        channel_layers.backends.clear()


@pytest.mark.parametrize("path", ["/login/", "/api/runs/", "/", "/healthz"])
@pytest.mark.django_db
def test_answers_are_private_and_kept_nowhere(client: Client, path: str) -> None:
    client.force_login(user_in("viewer"), backend="django.contrib.auth.backends.ModelBackend")
    assert "no-store" in client.get(path)["Cache-Control"]
    assert "private" in client.get(path)["Cache-Control"]


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
