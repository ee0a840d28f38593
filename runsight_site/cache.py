"""Redis as a cache: what it does not answer is not known, and nobody waits for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

from workflows_app.log_throttle import LogThrottle

AWAY_SECONDS = 5.0
log = structlog.get_logger("runsight.cache")


class JsonSerializer:
    """Values as JSON: whoever writes to Redis could put code into Django's pickles."""

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            return None  # nothing this server wrote


class ForgivingRedisCache(RedisCache):
    """Keeps figures and counts calls; a page or an API call must not fail because that is away."""

    _throttle = LogThrottle()
    asked_again_at = 0.0  # every thread has a cache of its own; what they know of Redis they share

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._try(lambda: super(ForgivingRedisCache, self).get(key, default, version), default)

    def set(self, key: Any, value: Any, *args: Any, **kwargs: Any) -> None:
        self._try(lambda: super(ForgivingRedisCache, self).set(key, value, *args, **kwargs), None)

    def _try(self, ask: Callable[[], Any], otherwise: Any) -> Any:
        if time.monotonic() < ForgivingRedisCache.asked_again_at:
            return otherwise
        try:
            return ask()
        except (RedisError, OSError) as error:
            ForgivingRedisCache.asked_again_at = time.monotonic() + AWAY_SECONDS
            self._throttle.warning(log, "the cache does not answer", error)
            return otherwise
