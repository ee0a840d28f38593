"""The programs under test, started as people start them: `runsight up` and `runsight worker`."""

import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

from tests.timing import wait_until

PROJECT = Path(__file__).resolve().parents[2]


class Program:
    """One `runsight` process and its log."""

    def __init__(
        self,
        command: str,
        log: Path,
        ready: str,
        environment: dict[str, str] | None = None,
        host: str | None = None,
    ) -> None:
        self.log, self.ready = log, ready
        with log.open("ab") as output:
            self.begins = output.tell()
            self.process = subprocess.Popen(
                [*_on_host(host), sys.executable, "-m", "runsight_site", *command.split()],
                env={**(environment or os.environ), "PYTHONUNBUFFERED": "1"},
                cwd=PROJECT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self) -> "Program":
        try:
            wait_until(
                lambda: bool(re.search(self.ready, self.text)) or self.process.poll() is not None, self.ready
            )
        except AssertionError as late:
            raise AssertionError(f"{late}: {self.text[-2000:]}") from None
        assert self.process.poll() is None, self.text[-3000:]
        return self

    @property
    def text(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self.begins)
            return file.read().decode(errors="replace")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)


def _on_host(name: str | None) -> list[str]:
    """What makes a program believe that its host is called this."""
    rename = 'hostname "$0" && exec "$@"'
    return ["unshare", "--map-root-user", "--uts", "sh", "-c", rename, name] if name else []


def worker(
    home: Path,
    name: str = "worker",
    concurrency: int = 4,
    host: str | None = None,
    clock: "Clock | None" = None,
) -> Program:
    log = home / f"{name}.log"
    environment = {**os.environ, **(clock.environment if clock else {})}
    return Program(f"worker --concurrency {concurrency}", log, r"worker is ready", environment, host)


def web(home: Path, port: int) -> Program:
    return Program(
        "up", home / "web.log", r"Runsight is at", {**os.environ, "PORT": str(port), "RUNSIGHT_DEMO": "0"}
    )


class Clock:
    """A clock that can be set wrong while the programs that go by it run; see hooks/sitecustomize.py."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_wrong_by(0)

    def set_wrong_by(self, seconds: float) -> None:
        mode = "r+b" if self.path.exists() else "wb"  # the same file: it is mapped into memory
        with self.path.open(mode) as file:
            file.write(struct.pack("d", seconds))

    @property
    def environment(self) -> dict[str, str]:
        hooks = Path(__file__).with_name("hooks")
        return {"FAULT_CLOCK": str(self.path), "PYTHONPATH": f"{hooks}:{os.environ['PYTHONPATH']}"}


def processes_of(sessions: set[int]) -> list[str]:
    """What still runs of the sessions we started: a worker's helpers are to end with it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(fields[3]) in sessions and fields[0] != "Z":
            found.append(f"{folder.name} {command[:120]}")
    return found
