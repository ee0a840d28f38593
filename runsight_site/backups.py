"""Copies of the SQLite database: made while everything runs, put back while nothing does."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import chain, count
from pathlib import Path

from django.conf import settings
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader

POSTGRES_HINT = (
    "This database is PostgreSQL; use its own tools, which copy it while it runs: "
    '`pg_dump --format=custom --file=runsight.dump "$DATABASE_URL"`, and '
    '`pg_restore --clean --if-exists --dbname="$DATABASE_URL" runsight.dump` with web and workers stopped.'
)


class BackupError(Exception):
    """Why nothing was copied; the message says what to do instead."""


def database_path() -> Path:
    """The SQLite file in use."""
    if connection.vendor != "sqlite":
        raise BackupError(POSTGRES_HINT)
    return Path(settings.DATABASES["default"]["NAME"])


def back_up(target: Path, *, overwrite: bool = False) -> None:
    """Copy the database as it is at one moment; readers and writers go on meanwhile."""
    source = database_path()
    if not source.exists():
        raise BackupError(f"There is no database at {source} to back up.")
    if target.exists() and not overwrite:
        raise BackupError(f"{target} exists; choose another name, or say --force.")
    if not target.parent.is_dir():
        raise BackupError(f"The folder {target.parent} does not exist; make it first.")
    _copy(source, target)


def put_back(source: Path) -> Path | None:
    """Replace the database by a backup; where the present one was put, if there was one."""
    target = database_path()
    _check_backup(source)
    connections.close_all()
    aside = _set_aside(target) if target.exists() else None
    try:
        _copy(source, target)
    except BaseException:
        if aside is not None:
            aside.replace(target)
        raise
    return aside


def _copy(source: Path, target: Path) -> None:
    """Write the copy beside its target, and put it there when it is whole."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.touch(mode=0o600)
    try:
        with (
            closing(
                sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=20)
            ) as original,
            closing(sqlite3.connect(part)) as copy,
        ):
            original.backup(copy)  # all pages in one step: one moment, and in WAL mode no writer waits for it
            _check_pages(copy, target)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _check_pages(database: sqlite3.Connection, path: Path) -> None:
    answer = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise BackupError(f"{path} is damaged: {answer}.")


def _check_backup(path: Path) -> None:
    """A readable Runsight database, not newer than this program."""
    if not path.is_file():
        raise BackupError(f"There is no file {path}.")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            _check_pages(database, path)
            rows = database.execute("SELECT app, name FROM django_migrations").fetchall()
    except sqlite3.Error as error:
        raise BackupError(f"{path} is not a backup of Runsight ({error}).") from None
    known = MigrationLoader(None).disk_migrations or {}
    ours = {app for app, _ in known}
    unknown = sorted(f"{app}.{name}" for app, name in rows if app in ours and (app, name) not in known)
    if unknown:
        raise BackupError(f"{path} comes from a newer Runsight (it has {unknown[0]}); update this one first.")


def _set_aside(target: Path) -> Path:
    """Move the present database out of the way, if nobody has it open."""
    try:
        with closing(sqlite3.connect(target, timeout=1)) as database:
            # Leaving WAL mode needs to be alone, and writes everything back into the one file.
            mode = database.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise BackupError(f"{target} cannot be opened ({error}); move it away to restore.") from None
        mode = "wal"
    if mode != "delete":
        raise BackupError(f"A Runsight is using {target}; stop the server and the workers, then restore.")
    first = f"{target.name}.before-restore"
    names = chain([first], (f"{first}-{number}" for number in count(2)))  # one of an earlier restore stays
    aside = next(path for path in map(target.with_name, names) if not path.exists())
    target.replace(aside)
    return aside
