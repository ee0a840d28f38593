"""Runs started over HTTP by a client of its own: how long one takes, and how many a second.

    python benchmarks/over_http.py [--runs 300] [--in-flight 8]

A fresh server (`runsight up`, SQLite, one process) executes a workflow of one code block with one assertion; each
call waits for the end of its run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.faults.stack import Program  # noqa: E402
from tests.services import free_port  # noqa: E402

YAML = """\
version: "1.0"
blocks:
  shout:
    type: code
    code: "def main(data): return 'HELLO'"
    assertions:
      - {type: equals, value: HELLO}
"""
CALLERS = 10  # each is limited in calls a minute


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--in-flight", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runsight-http-") as folder:
        home = Path(folder)
        port = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "RUNSIGHT_HOME": folder,
            "RUNSIGHT_DEMO": "0",
            "PORT": str(port),
        }
        server = Program("up", home / "up.log", "Runsight is at", environment).wait_ready()
        try:
            documents = home / "documents"
            documents.mkdir()
            (documents / "shout.yaml").write_text(YAML)
            command(environment, "import_workflows", str(documents))
            keys = [command(environment, "token", "admin", "--name", f"c{n}") for n in range(CALLERS)]
            measure(port, keys, 10, 1)
            report("one at a time", measure(port, keys, options.runs // 3, 1), 30)
            report(
                f"{options.in_flight} in flight", measure(port, keys, options.runs, options.in_flight), None
            )
        finally:
            server.stop()


def command(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "runsight_site", *arguments],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.split()[-1]


def measure(port: int, keys: list[str], runs: int, in_flight: int) -> tuple[list[float], float]:
    """Milliseconds of each call, and the seconds for all of them."""

    def work(key: str, count: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Token {key}", "Content-Type": "application/json"}
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            connection.request("POST", "/api/workflows/shout/runs/?wait=30", "{}", headers)
            answer = connection.getresponse()
            run = json.loads(answer.read())
            taken.append((time.perf_counter() - began) * 1000)
            if answer.status != 201 or run["status"] != "completed" or not run["eval_passed"]:
                raise SystemExit(f"{answer.status}: {run}")
        connection.close()
        return taken

    shares = [runs // in_flight + (n < runs % in_flight) for n in range(in_flight)]
    began = time.perf_counter()
    with ThreadPoolExecutor(in_flight) as pool:
        found = list(pool.map(work, (key for key, _ in zip(cycle(keys), shares, strict=False)), shares))
    return [one for part in found for one in part], time.perf_counter() - began


def report(name: str, measured: tuple[list[float], float], wanted_ms: float | None) -> None:
    taken, seconds = measured
    taken.sort()
    print(
        f"{name:>16}: median {statistics.median(taken):6.1f} ms"
        + (f" (wanted {wanted_ms:g})" if wanted_ms else "")
        + f", 95 % {taken[int(len(taken) * 0.95)]:6.1f} ms, {len(taken) / seconds:6.1f} runs a second"
        + ("" if wanted_ms else " (wanted 60)")
    )


if __name__ == "__main__":
    main()
