"""Servers of a test's own, on a port that stays: to be killed and started again."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.services import find_program, free_port, is_listening, postgres_answers, rabbitmq_start
from tests.timing import wait_until


class Server:
    """A process that listens on one port for as long as it is meant to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        return is_listening(self.port)

    user: str | None = None
    environment: dict[str, str] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command(),
            user=self.user,
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(self.is_ready, f"{type(self).__name__} answers", 60)

    def kill(self) -> None:
        """As a power cut would: nothing is saved, nobody is informed."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def discard(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(Server):
    """Keeps nothing on disk: a restart loses every message and subscription."""

    def command(self) -> list[str]:
        return [
            find_program("redis-server", "Redis"),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
        ]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class Postgres(Server):
    """A cluster of its own, with its disk's promises kept: `fsync` stays on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        self.program = str(programs[-1]) if programs else find_program("postgres", "PostgreSQL")
        self.user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        if self.user:
            shutil.chown(folder, self.user)
        initdb = [
            str(Path(self.program).with_name("initdb")),
            "-D",
            "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-N",
        ]
        subprocess.run(initdb, check=True, user=self.user, cwd=folder, stdout=subprocess.DEVNULL)

    def command(self) -> list[str]:
        return [self.program, "-D", "data", "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]

    def is_ready(self) -> bool:
        return postgres_answers(self.url)

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def kill(self) -> None:
        """Kill the postmaster and wait until the others have noticed, as they must before it starts again."""
        super().kill()
        wait_until(lambda: not is_listening(self.port), "PostgreSQL is gone", 10)


class RabbitMQ(Server):
    """Keeps its durable queues on disk; what was on its way is lost."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.starting, self.environment, self.user = rabbitmq_start(folder, self.port)

    def command(self) -> list[str]:
        return self.starting

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"


def start_own(names: str) -> dict[str, Server]:
    """Start the servers named, and point the settings' variables at them."""
    kinds: dict[str, tuple[type[Redis | Postgres | RabbitMQ], tuple[str, ...]]] = {
        "redis": (Redis, ("REDIS_URL", "CELERY_BROKER_URL")),
        "postgres": (Postgres, ("DATABASE_URL",)),
        "rabbitmq": (RabbitMQ, ("CELERY_BROKER_URL",)),
    }
    started: dict[str, Server] = {}
    for name in filter(None, names.split(",")):
        kind, variables = kinds[name]
        server = kind(Path(tempfile.mkdtemp(prefix=f"runsight-{name}-")))
        server.start()
        started[name] = server
        os.environ.update(dict.fromkeys(variables, server.url))
    return started
