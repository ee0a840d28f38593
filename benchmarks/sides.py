"""Databases with different amounts stored that take turns, because a machine is never quiet."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


class Side:
    """One database of its own, and a process that fills it and answers: the script itself, called with `--serve`.

    On a PostgreSQL server where one is given, otherwise SQLite. The process reads a question from each line and
    ends its answer with a line `done`; it ends when it reads `end`.
    """

    def __init__(self, script: str, stored: int, server: str | None = None) -> None:
        self.server, self.name = server, f"runsight_bench_{secrets.token_hex(4)}"
        self.home = tempfile.mkdtemp(prefix="runsight-bench-")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "RUNSIGHT_HOME": self.home}
        if server:
            self._ask_server(f"CREATE DATABASE {self.name}")
            environment["DATABASE_URL"] = f"{server.rpartition('/')[0]}/{self.name}"
        self.process = subprocess.Popen(
            [sys.executable, script, "--serve", str(stored)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, what: str) -> str:
        """What the process answers; the first answer comes when its database is filled."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) != "done\n":
            if not line:
                raise SystemExit("a process of the benchmark ended")
            lines.append(line)
        return "".join(lines)

    def stop(self) -> None:
        """End the process and remove what it stored."""
        self.process.communicate("end\n")
        if self.server:
            self._ask_server(f"DROP DATABASE {self.name} WITH (FORCE)")
        shutil.rmtree(self.home)

    def _ask_server(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)
