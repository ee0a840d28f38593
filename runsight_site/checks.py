"""Settings that work each by itself but not together, found by `runsight check` and at every start."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from runsight_site.environment import Environment, is_loopback


@register()
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of combinations that are unlikely to be meant."""
    return find_odd_combinations(settings.ENV)


def find_odd_combinations(env: Environment) -> list[CheckMessage]:
    """Each odd combination with an id and a hint."""
    found: list[CheckMessage] = []

    def warn(number: int, message: str, hint: str) -> None:
        found.append(Warning(message, hint=hint, id=f"runsight.W{number:03}"))

    if env["RUNSIGHT_DEBUG"] and (env.is_https or not is_loopback(env["HOST"])):
        warn(
            1,
            "RUNSIGHT_DEBUG is on, and others reach this server: an error page shows them source and settings.",
            "Unset RUNSIGHT_DEBUG.",
        )
    is_open_http = not env.is_https and not is_loopback(env["HOST"])
    if is_open_http and not env["RUNSIGHT_URL"] and not env["RUNSIGHT_ALLOWED_HOSTS"]:
        warn(
            2,
            f"HOST is {env['HOST']!r}, but only loopback names are answered: others get 'Bad Request'.",
            "Name the host people type in RUNSIGHT_URL or RUNSIGHT_ALLOWED_HOSTS.",
        )
    if "*" in env["RUNSIGHT_ALLOWED_HOSTS"]:
        warn(
            3,
            "RUNSIGHT_ALLOWED_HOSTS is '*': any Host header is believed, also in links that are sent.",
            "List the names.",
        )
    if env["RUNSIGHT_EXECUTOR"] == "celery" and not env["REDIS_URL"]:
        warn(
            4,
            "Runs are executed by celery workers, but without REDIS_URL their events reach no open page at once.",
            "Set REDIS_URL.",
        )
    if env["RUNSIGHT_EXECUTOR"] == "local" and env["CELERY_BROKER_URL"]:
        warn(
            5,
            "CELERY_BROKER_URL is set, but RUNSIGHT_EXECUTOR is 'local', so no worker is asked.",
            "Set RUNSIGHT_EXECUTOR=celery or unset CELERY_BROKER_URL.",
        )
    return found
