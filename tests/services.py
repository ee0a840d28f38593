"""The services a test may need: what is running is used, what is only installed is started."""

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Missing(Exception):
    """A service that neither runs nor can be started; the message says what to install."""


def is_available(service: str) -> bool:
    """Whether the service runs or could be started."""
    return problem_with(service) == ""


def problem_with(service: str) -> str:
    """Why the service cannot be had; empty when it can."""
    try:
        url_of(service)
    except Missing as missing:
        return str(missing)
    return ""


def url_of(service: str) -> str:
    """Where the service is reached (for the browser: its executable)."""
    if service not in FINDERS:
        raise ValueError(f"needs({service!r}): unknown service; use one of {', '.join(FINDERS)}")
    answer = _found(service)
    if isinstance(answer, Missing):
        raise answer
    return answer


@functools.cache
def _found(service: str) -> str | Missing:
    variable = f"RUNSIGHT_TEST_{service.upper()}"
    if variable not in os.environ:  # parallel workers inherit what the first process found
        try:
            os.environ[variable] = FINDERS[service]()
        except Missing as missing:
            return missing
    return os.environ[variable]


def _postgres() -> str:
    for user in ("postgres", "root", os.environ.get("USER", "postgres")):
        url = f"postgres://{user}@127.0.0.1:5432/postgres"
        if postgres_answers(url):
            return url
    return _start_postgres()


def postgres_answers(url: str) -> bool:
    import psycopg

    if not is_listening(5432 if urlsplit(url).port is None else urlsplit(url).port or 0):
        return False
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            )
            return bool((row.fetchone() or [False])[0])
    except psycopg.Error:
        return False


def _start_postgres() -> str:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    server = str(programs[-1]) if programs else find_program("postgres", "PostgreSQL")
    folder = _scratch_folder("postgres")
    port = free_port()
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(folder, user)
    initdb = [
        str(Path(server).with_name("initdb")),
        "-D",
        f"{folder}/data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-N",
    ]
    subprocess.run(initdb, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
    command = [server, "-D", f"{folder}/data", "-p", str(port), "-h", "127.0.0.1", "-k", str(folder)]
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    _start([*command, "-c", "fsync=off"], lambda: postgres_answers(url), user=user)
    return url


def _redis() -> str:
    # Always one of our own where possible: tests flush it, and somebody may be using the one that runs.
    if shutil.which("redis-server") is None and is_listening(6379):
        return "redis://127.0.0.1:6379/15"
    port = free_port()
    command = [
        find_program("redis-server", "Redis"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
    ]
    _start([*command, "--dir", str(_scratch_folder("redis"))], lambda: is_listening(port))
    return f"redis://127.0.0.1:{port}/0"


def _rabbitmq() -> str:
    if is_listening(5672):
        return "amqp://guest:guest@127.0.0.1:5672//"
    folder, port = _scratch_folder("rabbitmq"), free_port()
    command, environment, user = rabbitmq_start(folder, port)
    _start(command, lambda: is_listening(port), user=user, environment=environment, patience_s=60)
    return f"amqp://guest:guest@127.0.0.1:{port}//"


def rabbitmq_start(folder: Path, port: int) -> tuple[list[str], dict[str, str], str | None]:
    """How to start a RabbitMQ that keeps everything in one folder: command, environment, user."""
    # Debian's wrapper writes to the system's log folder.
    direct = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    server = str(direct) if direct.exists() else find_program("rabbitmq-server", "RabbitMQ")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"runsight{port}@localhost",
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),  # not the machine's configuration
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    user = "rabbitmq" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    return [server], environment, user


def _browser() -> str:
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name):
            return found
    raise Missing("no Chromium is installed (Debian: apt-get install chromium)")


FINDERS: dict[str, Callable[[], str]] = {
    "postgres": _postgres,
    "redis": _redis,
    "rabbitmq": _rabbitmq,
    "browser": _browser,
}


def find_program(name: str, product: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{product} neither runs on this machine nor is it installed ({name} was not found)")
    return found


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _scratch_folder(service: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"runsight-{service}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _start(
    command: list[str],
    is_ready: Callable[[], bool],
    *,
    user: str | None = None,
    environment: dict[str, str] | None = None,
    patience_s: float = 20,
) -> None:
    """Start a server that ends with this process, and wait until it answers."""
    server = subprocess.Popen(
        command,
        user=user,
        env=environment,
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(_stop, server)
    deadline = time.monotonic() + patience_s
    while not is_ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise Missing(f"{Path(command[0]).name} is installed but did not start")
        time.sleep(0.05)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
