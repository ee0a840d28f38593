"""Runs a scenario of the lab in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.stack import PROJECT

Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """`play("worker_killed", size=3, DATABASE_URL=…)`: what the scenario measured, all promises kept."""

    def play(scenario: str, size: int = 1, seed: int = 1, **environment: str) -> dict[str, Any]:
        home = tmp_path / "home"
        clean = {
            "PATH": os.environ["PATH"],
            "RUNSIGHT_HOME": str(home),
            "PYTHONPATH": str(PROJECT),
            **environment,
        }
        lab = subprocess.Popen(
            [sys.executable, "-m", "tests.faults", scenario, str(size), str(seed)],
            env=clean, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            out, problem = lab.communicate(timeout=3600)
        except BaseException:
            lab.send_signal(signal.SIGINT)  # it ends the servers and programs that it started
            lab.communicate(timeout=60)
            raise
        logs = "".join(f"\n== {log.name}\n{log.read_text()[-1500:]}" for log in home.glob("*.log"))
        assert lab.returncode == 0, problem[-3000:] + logs
        report: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert report.pop("violations") == [], logs
        note(report)
        return report

    return play


def note(report: dict[str, Any]) -> None:
    """Keep the figures where `docs/reliability.md` gets them from, if a file is named."""
    if path := os.environ.get("RUNSIGHT_FAULT_FIGURES"):
        with Path(path).open("a") as file:
            file.write(json.dumps(report) + "\n")
