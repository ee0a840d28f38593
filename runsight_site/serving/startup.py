"""What has to be true before the server serves: tables, and somebody who can log in."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from runsight_site.environment import BadSetting, is_loopback

ADMIN_NAME = "admin"
DATABASE_LOCK = 0x72756E73  # any number that nobody else takes


@dataclass(frozen=True)
class Administrator:
    """Who may log in first; the password only if it was made just now."""

    user: User | None
    generated_password: str = ""
    is_new: bool = False


@contextmanager
def start_lock() -> Iterator[None]:
    """Let one process at a time prepare this data folder, and this database if other hosts have it too."""
    with (settings.RUNSIGHT_HOME / "start.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if connection.vendor != "postgresql":
            yield
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [DATABASE_LOCK])
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [DATABASE_LOCK])


def migrate_if_due() -> None:
    """Bring the tables up to date; an up-to-date database is not touched."""
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    is_postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_postgres:  # a large table takes longer to change than any request may
            cursor.execute("SET statement_timeout = 0")
        call_command("migrate", interactive=False, verbosity=0)
        if is_postgres:
            cursor.execute("RESET statement_timeout")


def ensure_administrator() -> Administrator:
    """The first administrator, made if there is no user at all."""
    if User.objects.exists():
        return Administrator(User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first())
    chosen: str = settings.RUNSIGHT_ADMIN_PASSWORD
    if chosen:
        _refuse_weak_password(chosen)
    password = chosen or secrets.token_urlsafe(12)
    user = User.objects.create_superuser(ADMIN_NAME, password=password)
    return Administrator(user, "" if chosen else password, is_new=True)


def _refuse_weak_password(password: str) -> None:
    """A weak password is the owner's business on a laptop, but not on a server that others reach."""
    if is_loopback(settings.HOST) and not settings.RUNSIGHT_URL.startswith("https://"):
        return
    try:
        validate_password(password)
    except ValidationError as error:
        raise BadSetting(
            f"RUNSIGHT_ADMIN_PASSWORD: the value is too weak for a server that others reach "
            f"({' '.join(error.messages)}); use a longer one, or none to have one made."
        ) from None
