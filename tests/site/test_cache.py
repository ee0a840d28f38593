"""A cache that is away is a cache that knows nothing."""

from typing import Any

import pytest
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
