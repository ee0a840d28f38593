"""A cache that is away is a cache that knows nothing."""

import json
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest
import redis
from django.core.cache import cache
from django.test import Client

from runsight_site.cache import ForgivingRedisCache
from tests.callers import caller, user_in


@pytest.fixture(autouse=True)
def away(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "runsight_site.cache.ForgivingRedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        }
    }
    monkeypatch.setattr(ForgivingRedisCache, "asked_again_at", 0.0)


def test_what_redis_does_not_answer_is_not_known() -> None:
    cache.set("key", 1, 10)
    assert cache.get("key") is None
    assert cache.get("key", []) == []


@pytest.mark.django_db
def test_pages_and_calls_go_on_without_redis() -> None:
    assert caller("viewer").get("/api/runs/").status_code == 200
    browser = Client()
    browser.force_login(user_in("viewer"), backend="django.contrib.auth.backends.ModelBackend")
    for path in ("/", "/dashboard/figures/?range=7d", "/runs/"):
        assert browser.get(path).status_code == 200, path


class Planted:
    """Runs code where a pickle of it is read."""

    def __reduce__(self) -> Any:
        return exec, ("import os; os.environ['PLANTED'] = '1'",)


def test_what_somebody_else_wrote_to_redis_is_not_executed(
    redis_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANTED", raising=False)
    command = "from django.conf import settings; import json; print(json.dumps(settings.CACHES))"
    served = subprocess.run(
        [sys.executable, "-m", "django", "shell", "--no-imports", "-c", command],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "runsight_site.settings", "REDIS_URL": redis_url},
        capture_output=True,
        text=True,
        check=True,
    )
    settings.CACHES = json.loads(served.stdout)
    cache.set("counts", [1.5, 2.5], 10)
    assert cache.get("counts") == [1.5, 2.5]
    with redis.Redis.from_url(redis_url) as client:
        (key,) = client.keys("*counts*")
        client.set(key, pickle.dumps(Planted()))
    assert cache.get("counts") is None
    assert "PLANTED" not in os.environ
