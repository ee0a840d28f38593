"""Settings that work each by itself but not together, found by `runsight check` and at every start."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from runsight_site.environment import SiteEnvironment, is_loopback


@register()
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of combinations that are unlikely to be meant."""
    return find_odd_combinations(settings.ENV)


def find_odd_combinations(env: SiteEnvironment) -> list[CheckMessage]:
    """Each odd combination with an id and a hint."""
    is_loopback_only = is_loopback(env["HOST"])
    is_unnamed = not env["RUNSIGHT_URL"] and not env["RUNSIGHT_ALLOWED_HOSTS"]
    combinations = (
        (
            env["RUNSIGHT_DEBUG"] and (env.is_https or not is_loopback_only),
            "RUNSIGHT_DEBUG is on, and others reach this server: an error page shows them source and settings.",
            "Unset RUNSIGHT_DEBUG.",
        ),
        (
            not env.is_https and not is_loopback_only and is_unnamed,
            f"HOST is {env['HOST']!r}, but only loopback names are answered: others get 'Bad Request'.",
            "Name the host people type in RUNSIGHT_URL or RUNSIGHT_ALLOWED_HOSTS.",
        ),
        (
            "*" in env["RUNSIGHT_ALLOWED_HOSTS"],
            "RUNSIGHT_ALLOWED_HOSTS is '*': any Host header is believed, also in links that are sent.",
            "List the names.",
        ),
        (
            env["RUNSIGHT_EXECUTOR"] == "celery" and not env["REDIS_URL"],
            "Runs are executed by celery workers, but without REDIS_URL their events reach no open page at once.",
            "Set REDIS_URL.",
        ),
        (
            env["RUNSIGHT_EXECUTOR"] == "local" and env["CELERY_BROKER_URL"],
            "CELERY_BROKER_URL is set, but RUNSIGHT_EXECUTOR is 'local', so no worker is asked.",
            "Set RUNSIGHT_EXECUTOR=celery or unset CELERY_BROKER_URL.",
        ),
    )
    return [
        Warning(message, hint=hint, id=f"runsight.W{number:03}")
        for number, (is_odd, message, hint) in enumerate(combinations, 1)
        if is_odd
    ]
