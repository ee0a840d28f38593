"""Events of other processes, Redis in between, and the server that `up` starts."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from channels.layers import channel_layers
from django.db import connection

from tests import services as test_services
from tests.factories import make_workflow
from tests.timing import wait_until
from tests.workflows.live.sockets import finished_run, lab, viewing
from workflows_app.live import poller as row_watch
from workflows_app.live.outbox import run_group
from workflows_app.models import Run

ROOT = Path(__file__).resolve().parents[3]
SLOW_BLOCK = """\
version: "1.0"
blocks:
  slow:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(1.5)
          return "HELLO"
    assertions:
      - {type: contains, value: HELLO}
"""
HAPPEN = """\
import sys, django
django.setup()
from tests.workflows.live.sockets import happen
from workflows_app.models import Run
happen(Run.objects.select_related("workflow").get(pk=sys.argv[1]), int(sys.argv[2]))
"""


def same_rows() -> dict[str, str]:
    """The environment of another process on the test's database."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:////{str(database['NAME']).lstrip('/')}"
    else:
        url = (
            f"postgres://{database['USER']}@{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"
        )
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "runsight_site.settings",
        "PYTHONPATH": str(ROOT),
    }


def happen_elsewhere(run: Run, count: int, **environment: str) -> int:
    command = [sys.executable, "-c", HAPPEN, str(run.pk), str(count)]
    subprocess.run(command, env={**same_rows(), **environment}, check=True, timeout=60)
    run.refresh_from_db()
    return run.last_seq


@pytest.mark.storage
def test_run_of_a_command_is_seen_live_without_redis(live_site: str) -> None:
    make_workflow(SLOW_BLOCK, slug="slow")
    with viewing(live_site, "dashboard/") as dashboard:
        dashboard.next()
        command = [sys.executable, str(ROOT / "manage.py"), "run", "slow"]
        with subprocess.Popen(command, env=same_rows(), stdout=subprocess.DEVNULL) as process:
            run_id = dashboard.until("run_updated")["data"]["id"]
            with viewing(live_site, f"runs/{run_id}/") as viewer:
                viewer.until("node_started")
                assert process.poll() is None, "the run was over before anybody saw it"
                last = viewer.until("run_completed")
            assert viewer.seqs == list(range(1, last["seq"] + 1))
            while dashboard.until("run_updated")["data"]["status"] != "completed":
                pass
            assert process.wait(20) == 0


# Through Redis


@contextmanager
def layer_at(url: str, settings: Any) -> Iterator[None]:
    """The site's sockets behind Redis, as REDIS_URL sets it."""
    backend = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [url]}}
    settings.CHANNEL_LAYERS = {"default": backend}
    channel_layers.backends.clear()
    yield
    channel_layers.backends.clear()


@pytest.fixture
def redis_layer(redis_url: str, settings: Any) -> Iterator[str]:
    with layer_at(redis_url, settings):
        yield redis_url


@pytest.fixture
def no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the safety net, so that what arrives came through Redis."""
    monkeypatch.setattr(row_watch, "WITH_LAYER_SECONDS", 600.0)


@pytest.mark.storage
def test_events_of_another_process_come_through_redis(
    redis_layer: str, no_watch: None, live_site: str
) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer, viewing(live_site, "dashboard/") as dashboard:
        viewer.until_seq(run.last_seq)
        dashboard.next()
        last = happen_elsewhere(run, 25, REDIS_URL=redis_layer)
        assert viewer.until_seq(last) == list(range(1, last + 1))


@pytest.mark.storage
def test_idle_socket_still_hears(redis_layer: str, no_watch: None, live_site: str) -> None:
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/?after={run.last_seq}") as viewer:
        assert viewer.is_quiet(12)  # longer than Redis clients' usual time-outs
        last = happen_elsewhere(run, 1, REDIS_URL=redis_layer)
        assert viewer.until_seq(last) == [last]


class OwnRedis:
    """A Redis that a test may stop and start."""

    def __init__(self) -> None:
        self.port = test_services.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd="/tmp")
        while not test_services.is_listening(self.port):
            assert self.process.poll() is None
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def own_redis(settings: Any) -> Iterator[OwnRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server, to stop and start it")
    server = OwnRedis()
    with layer_at(server.url, settings):
        yield server
    if server.process.poll() is None:
        server.stop()


@pytest.mark.storage
def test_viewers_catch_up_when_redis_was_away(
    own_redis: OwnRedis,
    monkeypatch: pytest.MonkeyPatch,
    live_site: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(row_watch, "WITH_LAYER_SECONDS", 0.5)
    run = finished_run()
    with viewing(live_site, f"runs/{run.pk}/") as viewer:
        viewer.until_seq(run.last_seq)
        own_redis.stop()
        last = happen_elsewhere(run, 3, REDIS_URL=own_redis.url)
        assert viewer.until_seq(last) == list(range(1, last + 1))  # from the rows
        with viewing(live_site, f"runs/{run.pk}/") as newcomer:  # is let in all the same
            assert newcomer.until_seq(last) == list(range(1, last + 1))
        own_redis.start()
        with redis.Redis.from_url(own_redis.url) as client:
            group = f"*{run_group(run.pk)}*"
            wait_until(lambda: client.pubsub_channels(group), "the layer's subscription")
        is_blind = threading.Event()  # from here on, nothing comes from the rows

        def sees_nothing(watch: row_watch.RowWatch) -> bool:
            is_blind.set()
            return False

        monkeypatch.setattr(row_watch.RowWatch, "may_have_changed", sees_nothing)
        wait_until(is_blind.is_set, "the last look at the rows")
        last = happen_elsewhere(run, 3, REDIS_URL=own_redis.url)
        assert viewer.until_seq(last) == list(range(1, last + 1))  # through Redis again
    assert capsys.readouterr().err.count("Unexpected exception in receive task") <= 1


# The server that `up` starts


def ask(process: "subprocess.Popen[str]", line: str) -> int:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return int(process.stdout.readline().split()[0])


def test_server_of_up_serves_sockets(clean_environment: dict[str, str]) -> None:
    with lab(clean_environment) as (process, facts):
        headers = {"Authorization": f"Token {facts['key']}"}
        with viewing(facts["url"], f"runs/{facts['run']}/", headers) as viewer:
            last = ask(process, "10 100")
            assert viewer.until_seq(last) == list(range(1, last + 1))
            viewer.connection.send("garbage")
            assert viewer.end() == (4400, 'send nothing, or {"event": "pong"}')
        for path, given, code in (
            (f"runs/{facts['run']}/", {}, 4401), ("nowhere/", headers, 4404), (f"runs/{facts['run']}/?after=x", headers, 4400)
        ):  # fmt: skip
            with viewing(facts["url"], path, given) as viewer:
                assert viewer.end()[0] == code
        with viewing(facts["url"], "dashboard/", headers) as viewer:
            viewer.next()
            viewer.connection.send("x" * 100_000)
            assert viewer.end()[0] == 1009  # nobody may fill our memory


def test_server_of_up_lets_a_viewer_go_who_does_not_read(clean_environment: dict[str, str]) -> None:
    with lab({**clean_environment, "STALL_SECONDS": "1"}) as (process, facts):
        headers = {"Authorization": f"Token {facts['key']}"}
        with (
            viewing(facts["url"], f"runs/{facts['run']}/", headers, max_queue=1) as lazy,
            viewing(facts["url"], f"runs/{facts['run']}/", headers) as keen,
        ):
            lazy.next()
            last = ask(process, "100 200000")
            assert keen.until_seq(last) == list(range(1, last + 1))
            assert memory_mb(process.pid) < 400
            wait_until(lambda: ask(process, "viewers") == 1, "the end of the viewer who does not read")
            assert lazy.end(30)[0] == 4408
        assert lazy.seqs == list(range(1, len(lazy.seqs) + 1))
        assert len(lazy.seqs) < last
        resume = f"runs/{facts['run']}/?after={lazy.seqs[-1]}"
        with viewing(facts["url"], resume, headers) as again:
            assert again.until_seq(last) == list(range(lazy.seqs[-1] + 1, last + 1))


def memory_mb(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
