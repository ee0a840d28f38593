"""A backup made while everything runs gives back exactly what was there."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from runsight_site import backups
from tests.faults.stack import PROJECT, Program

SHOUT = 'version: "1.0"\nblocks:\n  shout:\n    type: code\n    code: "def main(data): return 1"\n'


def runsight(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runsight_site", *arguments],
        env={**environment, "PYTHONPATH": str(PROJECT)}, cwd=PROJECT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def rows_of(path: Path) -> dict[str, list[object]]:
    with closing(sqlite3.connect(path)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        return {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names.fetchall()}


def test_backup_restores_every_row_and_a_running_server_is_not_pulled_away(clean_environment, tmp_path):
    home, copy = Path(clean_environment["RUNSIGHT_HOME"]), tmp_path / "copy.sqlite3"
    home.mkdir()
    environment = {**clean_environment, "RUNSIGHT_DEMO": "0"}
    database = home / "runsight.sqlite3"
    server = Program("up", home / "web.log", "Runsight is at", environment)
    try:
        server.wait_ready()
        (tmp_path / "shout.yaml").write_text(SHOUT)
        assert runsight(environment, "import_workflows", str(tmp_path)).returncode == 0
        made = runsight(environment, "backup", str(copy))
        assert made.returncode == 0, made.stderr
        assert "secret_key" in made.stdout
        refused = runsight(environment, "restore", str(copy))
        assert refused.returncode != 0
        assert "A Runsight is using" in refused.stderr
        again = runsight(environment, "backup", str(copy))
        assert "exists; choose another name" in again.stderr
    finally:
        assert server.stop() == 0
    before = rows_of(copy)
    assert len(before["workflows_app_workflow"]) == 1
    with closing(sqlite3.connect(database)) as changed, changed:
        changed.execute("DELETE FROM workflows_app_workflowversion")
    done = runsight(environment, "restore", str(copy))
    assert done.returncode == 0, done.stderr
    assert rows_of(database) == before
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not rows_of(home / "runsight.sqlite3.before-restore")["workflows_app_workflowversion"]


def test_copy_is_of_one_moment_while_somebody_writes(tmp_path, monkeypatch):
    source, copy = tmp_path / "source.sqlite3", tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(source, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE pair (a INTEGER, b INTEGER, filler TEXT)")
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(source, timeout=20)) as database:
            number = 0
            while not stop.is_set():
                number += 1
                with database:
                    database.execute("INSERT INTO pair VALUES (?, NULL, ?)", (number, "x" * 2000))
                    database.execute("UPDATE pair SET b = a WHERE a = ?", (number,))

    monkeypatch.setattr(backups, "database_path", lambda: source)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            backups.back_up(copy, overwrite=True)
            with closing(sqlite3.connect(copy)) as database:
                count, last, whole = database.execute(
                    "SELECT count(*), max(a), sum(a = b) FROM pair"
                ).fetchone()
            assert count == (last or 0) == (whole or 0)
    finally:
        stop.set()
        writer.join()
    assert count > 0
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_every_restore_keeps_what_it_replaces(tmp_path, monkeypatch):
    def database_named(name: str) -> Path:
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE django_migrations (app TEXT, name TEXT)")
            database.execute("INSERT INTO django_migrations VALUES ('none of ours', ?)", (name,))
        return path

    monkeypatch.setattr(backups, "database_path", lambda: target)
    target, copies = database_named("present"), [database_named(f"copy{n}") for n in range(3)]
    aside = [backups.put_back(copy) for copy in copies]
    assert [rows_of(path)["django_migrations"][0][1] for path in (*aside, target)] == [
        "present", "copy0", "copy1", "copy2",
    ]  # fmt: skip
    assert aside[0].name == "present.before-restore"


@pytest.mark.parametrize("content", [b"", b"not a database at all", None])
def test_what_is_no_backup_is_not_restored(tmp_path, monkeypatch, content):
    target, bad = tmp_path / "runsight.sqlite3", tmp_path / "bad"
    target.write_bytes(b"precious")
    monkeypatch.setattr(backups, "database_path", lambda: target)
    if content is not None:
        bad.write_bytes(content)
    with pytest.raises(backups.BackupError):
        backups.put_back(bad)
    assert target.read_bytes() == b"precious"


def test_backup_of_a_newer_program_is_refused(tmp_path, monkeypatch):
    newer = tmp_path / "newer"
    with closing(sqlite3.connect(newer)) as database, database:
        database.execute("CREATE TABLE django_migrations (app TEXT, name TEXT)")
        database.execute("INSERT INTO django_migrations VALUES ('workflows_app', '9999_future')")
    monkeypatch.setattr(backups, "database_path", lambda: tmp_path / "none.sqlite3")
    with pytest.raises(backups.BackupError, match="newer Runsight"):
        backups.put_back(newer)


def test_postgres_is_reported_its_own_way(clean_environment, postgres_url):
    answer = runsight({**clean_environment, "DATABASE_URL": postgres_url}, "backup", os.devnull)
    assert answer.returncode != 0
    assert "pg_dump" in answer.stderr
