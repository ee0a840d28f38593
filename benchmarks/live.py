"""How soon a committed event is on every screen: a real daphne process, clients in another, two events a second.

`python benchmarks/live.py [--seconds 15] [--clients 1,100,500] [--redis redis://127.0.0.1:6379/9]`
In one column every client is well-behaved; in the next 5 % of them read slowly or reconnect at random. Every client
checks that each event comes exactly once. Times are from the commit to the frame in the client, on one machine, so the
clients' own work is in them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

ROOT = Path(__file__).resolve().parent.parent
LAB = ROOT / "tests" / "workflows" / "live" / "socket_lab.py"
EVENT_BYTES = 1_500
PAUSE_SECONDS = 0.5
AWKWARD_SHARE = 0.05
WANTED_MS = {1: 100, 500: 500}


@dataclass
class Lab:
    """The server process and what it said when it listened."""

    process: subprocess.Popen[str]
    home: str
    url: str
    key: str
    run: str

    def commit(self) -> tuple[int, float]:
        """Commit one event: its number and when."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"1 {EVENT_BYTES}\n")
        self.process.stdin.flush()
        seq, committed = self.process.stdout.readline().split()
        return int(seq), float(committed)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.home, ignore_errors=True)


def start_lab(redis_url: str) -> Lab:
    home = tempfile.mkdtemp(prefix="runsight-live-")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RUNSIGHT_")}
    environment |= {"RUNSIGHT_HOME": home, "REDIS_URL": redis_url, "DATABASE_URL": "", "PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, str(LAB)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return Lab(process, home, **json.loads(process.stdout.readline()))


@dataclass
class Client:
    """One viewer: what it saw, when, and whether it is one of the awkward ones."""

    lab: Lab
    first: int
    is_awkward: bool = False
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)
    seqs: list[int] = field(default_factory=list)
    times: dict[int, float] = field(default_factory=dict)
    endings: list[int] = field(default_factory=list)
    last: int | None = None

    async def watch(self) -> None:
        while self.last is None or self.newest < self.last:
            address = f"{self.lab.url.replace('http', 'ws', 1)}/ws/runs/{self.lab.run}/?after={self.newest}"
            headers = {"Authorization": f"Token {self.lab.key}"}
            try:
                async with connect(
                    address, additional_headers=headers, compression=None, open_timeout=60, ping_interval=None
                ) as socket:
                    await self._read(socket)
            except ConnectionClosed as closed:
                self.endings.append(closed.rcvd.code if closed.rcvd else 1006)

    @property
    def newest(self) -> int:
        return self.seqs[-1] if self.seqs else self.first

    async def _read(self, socket: Any) -> None:
        self.is_ready.set()
        leave_at = time.monotonic() + random.uniform(0.3, 4) if self.is_awkward else None
        async for text in socket:
            now = time.monotonic()
            frame = json.loads(text)
            if "seq" in frame:
                self.seqs.append(frame["seq"])
                self.times[frame["seq"]] = now
            if self.newest == self.last or (leave_at and now > leave_at and random.random() < 0.5):
                return
            if self.is_awkward and random.random() < 0.3:
                await asyncio.sleep(random.uniform(0.2, 1.5))


async def measure(lab: Lab, count: int, seconds: float, awkward: float) -> tuple[list[float], int, int]:
    """Times in ms of the well-behaved clients, and how many events were lost and doubled by anybody."""
    first, _ = lab.commit()
    clients = [Client(lab, first, is_awkward=index < count * awkward) for index in range(count)]
    watching = []
    for start in range(0, count, 25):
        batch = clients[start : start + 25]
        watching += [asyncio.create_task(client.watch()) for client in batch]
        await asyncio.gather(*(client.is_ready.wait() for client in batch))
    await asyncio.sleep(1)
    committed: dict[int, float] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seq, moment = await asyncio.to_thread(lab.commit)
        committed[seq] = moment
        await asyncio.sleep(PAUSE_SECONDS)
    for client in clients:
        client.last = max(committed)
    final, _ = await asyncio.to_thread(lab.commit)  # so that each reads once more and sees that it is done
    for client in clients:
        client.last = final
    await asyncio.wait_for(asyncio.gather(*watching), 60)
    wanted = list(range(first + 1, final + 1))
    lost = sum(len(set(wanted) - set(client.seqs)) for client in clients)
    doubled = sum(len(client.seqs) - len(set(client.seqs)) for client in clients)
    times = [
        (client.times[seq] - moment) * 1000
        for client in clients
        if not client.is_awkward
        for seq, moment in committed.items()
    ]
    return sorted(times), lost, doubled


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--clients", default="1,100,500")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379/9", help="empty to leave Redis out")
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'layer':8} {'clients':>7} {'awkward':>7} {'p50 ms':>8} {'p99 ms':>8} {'wanted':>7} {'lost':>5} {'doubled':>7}"
    )
    is_bad = False
    for name, redis_url in (("memory", ""), ("redis", options.redis)):
        if name == "redis" and not redis_url:
            continue
        lab = start_lab(redis_url)
        try:
            for count in map(int, options.clients.split(",")):
                for awkward in (0.0, AWKWARD_SHARE) if count > 1 else (0.0,):
                    times, lost, doubled = asyncio.run(measure(lab, count, options.seconds, awkward))
                    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
                    wanted = str(WANTED_MS.get(count, "–"))
                    print(
                        f"{name:8} {count:7} {awkward:7.0%} {p50:8.1f} {p99:8.1f} {wanted:>7} {lost:5} {doubled:7}",
                        flush=True,
                    )
                    is_bad |= bool(lost or doubled)
        finally:
            lab.stop()
    print(f"load after: {os.getloadavg()[0]:.1f}")
    sys.exit(is_bad)


if __name__ == "__main__":
    main()
