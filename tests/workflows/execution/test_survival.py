"""A run survives the death of whoever executes it, wherever that happens."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from django.db import connection

pytestmark = pytest.mark.storage

SOAK = bool(os.environ.get("RUNSIGHT_SOAK"))
LAB = Path(__file__).with_name("kill_lab.py")
BLOCKS = {"ask", "draft", "rounds", "branches", "child", *(f"step{n}" for n in range(12))}

ONCE_A_NODE = ("node_completed", "node_eval_complete")


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment of a lab: a folder and a database of its own, of the kind that is being tested."""
    environment = {
        "PATH": os.environ["PATH"],
        "RUNSIGHT_HOME": str(tmp_path),
        "PYTHONPATH": str(LAB.parents[3]),
    }
    if connection.vendor == "postgresql":
        environment["DATABASE_URL"] = request.getfixturevalue("postgres_url")
    return environment


def run_lab(environment: dict[str, str], kills: int, rivals: int, seed: int) -> dict:
    done = subprocess.run(
        [sys.executable, str(LAB), str(kills), str(rivals), str(seed)],
        env=environment, cwd=environment["RUNSIGHT_HOME"], capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("kills", "rivals", "seed"), [(30, 1, 1), (12, 2, 2)])
def test_killed_run_completes_with_nothing_lost_and_nothing_doubled(stage, kills, rivals, seed):
    if connection.vendor == "postgresql" and not SOAK:
        kills //= 3  # the same code was killed more often on SQLite
    left = run_lab(stage, kills, rivals, seed)
    assert left["kills"] == kills
    assert left["statistics"] == "equal a rebuild"
    for run in left["runs"]:
        check(run)


def check(run: dict) -> None:
    assert run["status"] == "completed", run["error"]
    assert run["children"] == ["completed"]
    finished = [node for node in run["nodes"] if node["status"] == "completed"]
    assert all(node["is_evaluated"] for node in finished)
    times = Counter((node["is_own"], *node["key"]) for node in finished)
    assert set(times.values()) == {1}, "a finished block was run again"
    rounds = {("draft", n) for n in range(1, 5)}
    wanted = {(name, 1) for name in BLOCKS} | rounds | {("branches.a", 1), ("branches.b", 1)}
    assert {(name, iteration) for is_own, name, iteration in times if is_own} == wanted
    for history in run["events"]:
        assert [seq for seq, _, _ in history] == list(range(1, len(history) + 1))
        counts = Counter((event, node) for _, event, node in history if event in ONCE_A_NODE)
        assert set(counts.values()) == {1}
        assert [event for _, event, _ in history].count("run_completed") == 1
    assert sorted(run["observations"]) == sorted(BLOCKS)
