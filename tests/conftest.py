"""Shared fixtures, and the rule for tests that need a service."""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runsight_site.environment import VARIABLES
from tests import services

# What `make test` leaves for `make test-all`: a folder or file, and what it tries.
SLOW = {
    "tests/faults": "killed processes and services",
    "tests/fuzz": "broken inputs",
    "tests/browser/test_admin.py": "the admin in a browser",
    "tests/browser/test_editor.py": "the editor in a browser",
    "tests/browser/test_every_page.py": "every page in a browser",
    "tests/browser/test_lab.py": "the lab in a browser",
    "tests/browser/test_live_pages.py": "pages that follow runs in a browser",
    "tests/browser/test_look.py": "layout and colours in a browser",
    "tests/browser/test_run_live.py": "a run's page while it goes on in a browser",
    "tests/browser/test_workflow_pages.py": "workflow pages in a browser",
    "tests/site/test_backups.py": "backups",
    "tests/site/test_packaging.py": "the wheel",
    "tests/site/test_schemathesis.py": "the API against its schema",
    "tests/site/test_upgrades.py": "migrations from older versions",
    "tests/workflows/execution/test_survival.py": "killed executors",
    "tests/workflows/live/test_sockets_processes.py": "sockets of several processes",
}
ROOT = Path(__file__).resolve().parents[1]


def is_required(service: str) -> bool:
    """Whether RUNSIGHT_REQUIRE says that this run may not do without the service."""
    return service in os.environ.get("RUNSIGHT_REQUIRE", "").replace(" ", "").split(",")


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run on PostgreSQL without one ends at once, and says so."""
    database = os.environ.get("RUNSIGHT_TEST_DATABASE") or "sqlite"
    if database not in ("sqlite", "postgres"):
        pytest.exit(
            f"RUNSIGHT_TEST_DATABASE: {database!r} is not valid; use sqlite or postgres.", returncode=2
        )
    if database == "postgres" and (problem := services.problem_with("postgres")):
        pytest.exit(f"Not run on PostgreSQL: {problem}", returncode=1 if is_required("postgres") else 0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.needs("redis")` starts it, skips, or fails when RUNSIGHT_REQUIRE names it."""
    for marker in item.iter_markers("needs"):
        for service in marker.args:
            problem = services.problem_with(service)
            if problem and is_required(service):
                pytest.fail(f"RUNSIGHT_REQUIRE names {service}, but {problem}", pytrace=False)
            elif problem:
                pytest.skip(f"needs {service}: {problem}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file in SLOW marks its tests as slow; a fixture that brings a service marks its tests as needing it."""
    bringing = {
        "postgres_url": "postgres",
        "redis_url": "redis",
        "rabbitmq_url": "rabbitmq",
        "browser": "browser",
    }
    slow = tuple(ROOT / path for path in SLOW)
    for item in items:
        if any(item.path.is_relative_to(path) for path in slow):
            item.add_marker(pytest.mark.slow)
        fixtures = getattr(item, "fixturenames", ())
        for fixture, service in bringing.items():
            if fixture in fixtures:
                item.add_marker(pytest.mark.needs(service))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what a run without the slow tests did not try."""
    if config.option.markexpr == "not slow":
        terminalreporter.section("left for `make test-all`")
        for path, what in SLOW.items():
            terminalreporter.line(f"{path}: {what}")
        terminalreporter.line("PostgreSQL: what is marked `storage` ran on SQLite only")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A thread of the last test may be slow to give its connection back; its database is dropped all the same."""
    import psycopg
    from django.db import connection

    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock():
            connection.close()
            connection.close_pool()
        with psycopg.connect(services.url_of("postgres"), autocommit=True) as server:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            server.execute(others, [connection.settings_dict["NAME"]])


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database of the test's own."""
    import psycopg

    server = services.url_of("postgres")
    name = f"runsight_test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")  # nobody else can be using that one
        yield f"{server.rpartition('/')[0]}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A Redis of this test run, empty."""
    import redis

    url = services.url_of("redis")
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    yield url


@pytest.fixture
def rabbitmq_url() -> str:
    """A RabbitMQ that others may be using too: name queues uniquely and delete them."""
    return services.url_of("rabbitmq")


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a `runsight` subprocess with an empty data folder and default settings."""
    ours = {variable.name for variable in VARIABLES}  # tests/settings.py sets some of them
    unwanted = ("RUNSIGHT_", "DJANGO_", "PYTEST_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith(unwanted)
    }
    return {**kept, "RUNSIGHT_HOME": str(tmp_path / "home"), "PORT": "0", "PYTHONUNBUFFERED": "1"}


@pytest.fixture(autouse=True)
def stopped_executor() -> Iterator[None]:
    """A service that a test made on the way (a demo, a command) does not outlive it."""
    yield
    from workflows_app import executors

    # Forgotten first: one that cannot be stopped fails this test, and not every later one, too.
    service, executors.current = executors.current, None
    if service is not None:
        service.stop()


@pytest.fixture
def executor(transactional_db: None) -> Iterator[Any]:
    """A running executor in this process, which takes every run the test starts."""
    from workflows_app import executors
    from workflows_app.security import credentials

    credentials.forget()  # what an earlier test's tables said
    service = executors.ExecutionService(concurrency=4)
    executors.current = service
    service.start()
    yield service
    service.stop()  # before the tables are emptied under it
    executors.current = None


@pytest.fixture
def live_site(executor: Any) -> Iterator[str]:
    """The whole site with websockets and executor on a free port of this process; it sees the test's rows."""
    import uvicorn
    from channels.layers import channel_layers

    from runsight_site.asgi import application

    channel_layers.backends.clear()  # an in-memory layer belongs to the loop that first used it
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="warning", lifespan="off", ws="websockets-sansio")
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="live_site", daemon=True
    )
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the live site did not start"
        time.sleep(0.005)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = server.force_exit = True
    thread.join(timeout=10)
    listener.close()
    assert not thread.is_alive(), "the live site did not stop"
    channel_layers.backends.clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, one per module: while it is open no async test can run in the same thread."""
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright's loop looks to Django like async code, though nothing here runs in it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        chromium = playwright.chromium.launch(
            executable_path=services.url_of("browser"),
            args=["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
        )  # fmt: skip
        yield chromium
        chromium.close()


@pytest.fixture
def page_faults() -> list[str]:
    """Console errors, uncaught exceptions and CSP violations so far; clear what a test expects."""
    return []


@pytest.fixture
def page(browser: Any, page_faults: list[str], live_site: str) -> Iterator[Any]:
    """A fresh page in a fresh profile, closed before its site; the test fails if the page had a fault."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.on("console", lambda message: _note_console(page_faults, message))
    page.on("pageerror", lambda error: page_faults.append(f"uncaught: {error}"))
    yield page
    context.close()
    assert not page_faults, "the page had faults:\n" + "\n".join(page_faults)


@pytest.fixture
def held(page: Any) -> Callable[[str], Callable[[], None]]:
    """`held(pattern)` holds what the page asks for and matches back until the function it gives is called."""

    def hold(pattern: str) -> Callable[[], None]:
        waiting: list[Any] | None = []

        def handle(route: Any) -> None:
            if waiting is None:
                route.continue_()
            else:
                waiting.append(route)

        def release() -> None:
            nonlocal waiting
            held_back, waiting = waiting or [], None
            for route in held_back:
                route.continue_()

        page.route(pattern, handle)

        return release

    return hold


def _note_console(faults: list[str], message: Any) -> None:
    address = message.location.get("url", "")
    if address.endswith("/favicon.ico"):  # asked for by the browser itself on pages that name no icon
        return
    if message.type == "error" or "Content Security Policy" in message.text:
        faults.append(f"{message.type}: {message.text} ({address})")


@pytest.fixture
def sign_in(live_site: str) -> Callable[[Any, Any], None]:
    """`sign_in(page, user)`: the page's next request is that user's."""
    from django.conf import settings
    from django.test import Client

    def sign_in(page: Any, user: Any) -> None:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_site}])

    return sign_in
