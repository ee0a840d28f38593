"""The scaled-out stack under load: ingested runs, 100 websocket viewers, and the API's lists meanwhile.

    python benchmarks/load.py [--minutes 2] [--rate 160] [--viewers 100] [--web 2]

PostgreSQL and Redis are those the tests use; several web processes share them. `--rate` is in nodes a second;
0 sends as fast as it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests import services as found  # noqa: E402
from tests.faults.stack import Program  # noqa: E402

BLOCKS = [f"b{n}" for n in range(10)]
ASSERTIONS = """\
      - {type: contains, value: answer}
      - {type: word-count, value: {min: 5, max: 500}}
      - {type: not-regex, value: '\\bTODO\\b'}
      - {type: latency, threshold: 5000}
      - {type: rouge-n, value: the answer to the question is a short and plain text, threshold: 0.2}
"""
YAML = 'version: "1.0"\nblocks:\n' + "".join(
    f"  {name}:\n    type: code\n    code: 'def main(data): return 1'\n    assertions:\n{ASSERTIONS}"
    for name in BLOCKS
)
OUTPUT = "The answer to this question is a short and plain text with a number in it: {0}. " * 5
WATCH_AGAIN_SECONDS = 5  # somebody looks at a run for a while
LISTS = (
    "/api/runs/",
    "/api/runs/?status=completed",
    "/api/workflows/",
    "/api/regressions/",
    "/api/dashboard/",
)


@dataclass
class Figures:
    """What was measured."""

    ingest_ms: list[float] = field(default_factory=list)
    list_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    frames: int = 0
    gaps: int = 0
    watched: int = 0
    refused: int = 0
    memory_mb: list[float] = field(default_factory=list)
    processor_s: dict[str, float] = field(default_factory=dict)


class Stack:
    """A database of its own, and the web processes on it."""

    def __init__(self, processes: int) -> None:
        import psycopg

        self.server = found.url_of("postgres")
        self.name = f"runsight_load_{secrets.token_hex(4)}"
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}")
        self.home = Path(tempfile.mkdtemp(prefix="runsight-load-"))
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "RUNSIGHT_HOME": str(self.home),
            "DATABASE_URL": f"{self.server.rpartition('/')[0]}/{self.name}",
            "REDIS_URL": found.url_of("redis"),
            "RUNSIGHT_EXECUTOR": "celery",
            "RUNSIGHT_QUEUE": self.name,
            "RUNSIGHT_DEMO": "0",
        }
        self.ports = [found.free_port() for _ in range(processes)]
        self.programs: list[Program] = []

    def start(self) -> list[str]:
        """Start everything; the keys of a few callers, for each is limited in calls a minute."""
        for port in self.ports:
            environment = {**self.environment, "PORT": str(port)}
            program = Program("up", self.home / f"web-{port}.log", "Runsight is at", environment)
            self.programs.append(program.wait_ready())
        (self.home / "load.yaml").write_text(YAML)
        self.run("import_workflows", str(self.home))
        return [self.run("token", "admin", "--name", f"load{n}").split()[-1] for n in range(8)]

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "runsight_site", *arguments]
        done = subprocess.run(command, env=self.environment, cwd=PROJECT, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout.strip()

    def memory_mb(self) -> float:
        """What the web processes hold, resident."""
        total = 0
        for program in self.programs:
            status = Path(f"/proc/{program.process.pid}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0])
        return total / 1024

    def processor_s(self) -> dict[str, float]:
        """Processor time spent so far, by who spent it; backends that have ended are not counted."""
        import psycopg

        query = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        with psycopg.connect(self.server) as connection:
            backends = [pid for (pid,) in connection.execute(query, [self.name])]
        return {
            "web": sum(_spent(program.process.pid) for program in self.programs),
            "PostgreSQL": sum(_spent(pid) for pid in backends),
            "this script": time.process_time(),
        }

    def stop(self) -> None:
        import psycopg

        for program in self.programs:
            program.stop()
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Caller:
    """One keep-alive connection."""

    def __init__(self, port: int, key: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Token {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any, float]:
        begun = time.perf_counter()
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None, (time.perf_counter() - begun) * 1000


def report(number: str) -> dict[str, Any]:
    nodes = [
        {"node_id": name, "output": OUTPUT.format(number), "latency_ms": 900.0, "cost_usd": 0.001,
         "tokens": {"prompt": 100, "completion": 50}}
        for name in BLOCKS
    ]  # fmt: skip
    return {"workflow": "load", "external_id": number, "status": "completed", "nodes": nodes}


def ingest(stack: Stack, key: str, name: int, pace_s: float, until: float, figures: Figures) -> None:
    """Send run after run, not faster than the pace."""
    caller = Caller(stack.ports[name % len(stack.ports)], key)
    due, number = time.monotonic(), 0
    while time.monotonic() < until:
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due + pace_s, time.monotonic() - 5 * pace_s)
        number += 1
        try:
            status, answer, took = caller.call("POST", "/api/runs/ingest/", report(f"{name}-{number}"))
        except (OSError, http.client.HTTPException) as error:
            figures.failures.append(repr(error))
            caller = Caller(stack.ports[name % len(stack.ports)], key)
            continue
        if status != 201:
            figures.failures.append(f"{status}: {str(answer)[:200]}")
        else:
            figures.ingest_ms.append(took)
            figures.runs.append(answer["id"])


def read_lists(stack: Stack, key: str, until: float, figures: Figures) -> None:
    """Look at the lists as a page would, five times a second."""
    caller = Caller(stack.ports[0], key)
    turn = 0
    while time.monotonic() < until:
        turn += 1
        path = (
            f"/api/runs/{figures.runs[-1]}/nodes/"
            if turn % 6 == 0 and figures.runs
            else LISTS[turn % len(LISTS)]
        )
        status, _, took = caller.call("GET", path)
        figures.list_ms.append(took)
        if status != 200:
            figures.failures.append(f"{path}: {status}")
        time.sleep(0.2)


async def watch_run(port: int, key: str, until: float, figures: Figures) -> None:
    """Follow the newest run to its end, then the next one; every history must be whole."""
    from websockets.asyncio.client import connect

    while time.monotonic() < until:
        if not figures.runs:
            await asyncio.sleep(0.2)
            continue
        address = f"ws://127.0.0.1:{port}/ws/runs/{figures.runs[-1]}/"
        async with connect(
            address, additional_headers={"Authorization": f"Token {key}"}, open_timeout=60
        ) as socket:
            expected = 1
            async for text in socket:
                message = json.loads(text)
                if "seq" not in message:
                    continue
                figures.frames += 1
                figures.gaps += message["seq"] != expected
                expected = message["seq"] + 1
                if message["event"] == "run_completed":
                    break
        figures.watched += 1
        await asyncio.sleep(WATCH_AGAIN_SECONDS)


async def watch_many(port: int, key: str, path: str, until: float, figures: Figures) -> None:
    """Stay on a workflow's or the dashboard's socket."""
    from websockets.asyncio.client import connect

    address = f"ws://127.0.0.1:{port}{path}"
    async with connect(
        address, additional_headers={"Authorization": f"Token {key}"}, open_timeout=60
    ) as socket:
        while time.monotonic() < until:
            try:
                await asyncio.wait_for(socket.recv(), 1)
                figures.frames += 1
            except TimeoutError:
                continue


async def view(stack: Stack, keys: list[str], viewers: int, until: float, figures: Figures) -> None:
    """All viewers: two in five on runs, the others on the workflow and the dashboard."""
    jobs = []
    for n in range(viewers):
        port, key = stack.ports[n % len(stack.ports)], keys[n % len(keys)]
        if n % 5 < 2:
            jobs.append(watch_run(port, key, until, figures))
        else:
            path = "/ws/dashboard/" if n % 5 == 2 else "/ws/workflows/load/"
            jobs.append(watch_many(port, key, path, until, figures))
    for answer in await asyncio.gather(*jobs, return_exceptions=True):
        if isinstance(answer, Exception):
            figures.refused += 1
            figures.failures.append(f"viewer: {answer!r}")


def load(options: argparse.Namespace) -> int:
    stack = Stack(options.web)
    try:
        keys = stack.start()
        before = stack.processor_s()
        figures, until = Figures(), time.monotonic() + options.minutes * 60
        pace = 10 * options.senders / options.rate if options.rate else 0.0
        threads = [
            threading.Thread(target=ingest, args=(stack, keys[n % 4], n, pace, until, figures))
            for n in range(options.senders)
        ]
        threads.append(threading.Thread(target=read_lists, args=(stack, keys[4], until, figures)))
        threads.append(
            threading.Thread(
                target=lambda: asyncio.run(view(stack, keys[5:], options.viewers, until, figures))
            )
        )
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            figures.memory_mb.append(stack.memory_mb())
            time.sleep(2)
        for thread in threads:
            thread.join(90)
        figures.processor_s = {name: spent - before[name] for name, spent in stack.processor_s().items()}
        return print_table(figures, stack, options)
    finally:
        stack.stop()


def print_table(figures: Figures, stack: Stack, options: argparse.Namespace) -> int:
    """The table, and whether the promises were kept."""
    import psycopg

    with psycopg.connect(stack.environment["DATABASE_URL"]) as connection:
        query = "SELECT count(*) FROM workflows_app_runnode WHERE evaluated_at IS NOT NULL"
        nodes = (connection.execute(query).fetchone() or (0,))[0]
        holes = """SELECT count(*) FROM (
            SELECT r.id FROM workflows_app_run r JOIN workflows_app_runevent e ON e.run_id = r.id
            GROUP BY r.id, r.last_seq HAVING count(*) <> r.last_seq OR max(e.seq) <> r.last_seq) h"""
        lost = (connection.execute(holes).fetchone() or (0,))[0]
    quarter = max(1, len(figures.memory_mb) // 4)
    early, late = figures.memory_mb[quarter : 2 * quarter], figures.memory_mb[-quarter:]
    growth = statistics.median(late) / statistics.median(early or late)
    rows = [
        ("nodes evaluated and stored a second", f"{nodes / (options.minutes * 60):.0f}", "150", nodes / (options.minutes * 60) >= 150),
        ("ingest of a run, median / p95 ms", f"{_at(figures.ingest_ms, 50):.0f} / {_at(figures.ingest_ms, 95):.0f}", "", True),
        ("API lists, median / p95 ms", f"{_at(figures.list_ms, 50):.0f} / {_at(figures.list_ms, 95):.0f}", "p95 300", _at(figures.list_ms, 95) < 300),
        ("memory of the web processes, MB", f"{statistics.median(early or late):.0f} -> {statistics.median(late):.0f}", "flat", growth < 1.1),
        ("viewers / frames / runs watched", f"{options.viewers} / {figures.frames} / {figures.watched}", "", figures.refused == 0),
        ("runs whose events have holes", str(lost), "0", lost == 0),
        ("gaps seen by viewers", str(figures.gaps), "0", figures.gaps == 0),
        ("failures", str(len(figures.failures)), "0", not figures.failures),
    ]  # fmt: skip
    for name, value, wanted, is_kept in rows:
        print(f"{'ok ' if is_kept else 'NO '} {name:<40} {value:>22}   {wanted}")
    for name, spent in figures.processor_s.items():
        print(
            f"    processor time of {name:<24} {spent:8.1f} s, {spent * 1000 / max(nodes, 1):6.2f} ms a node"
        )
    for failure in figures.failures[:5]:
        print("   ", failure)
    return 0 if all(is_kept for *_, is_kept in rows) else 1


def _at(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=160.0, help="nodes a second; 0: as fast as it goes")
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--web", type=int, default=2, help="web processes")
    return load(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
