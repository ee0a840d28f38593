"""`runsight up` as a process of its own: first start, second start, what it says and how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, build_opener, urlopen

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, str(ROOT / "manage.py"), "up"]


class Server:
    """A running `up` and what it has printed so far."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
        )
        self.output = ""

    def read_until(self, text: str) -> str:
        assert self.process.stdout is not None
        watchdog = threading.Timer(60, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            self.output += line
            if text in line:
                break
        watchdog.cancel()
        assert text in self.output, self.output
        return self.output

    def stop(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=20)
        self.output += rest
        return self.process.returncode


@contextmanager
def up(environment: dict[str, str]) -> Iterator[Server]:
    server = Server(environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def shell(environment: dict[str, str], code: str) -> str:
    """What a piece of code prints."""
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "-v", "0", "-c", code]
    return subprocess.check_output(command, env=environment, text=True).strip()


def address(output: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", output)
    assert found, output
    return found[0]


def link(output: str) -> str:
    found = re.search(r"http://\S+/login/once/\S+", output)
    assert found, output
    return found[0]


def test_first_start_makes_an_administrator_and_second_start_touches_nothing(
    clean_environment: dict[str, str],
) -> None:
    home = Path(clean_environment["RUNSIGHT_HOME"])
    with up(clean_environment) as server:
        output = server.read_until("Ctrl-C")
        assert re.search(r"user +admin\n +password +\S{16} ", output)
        with urlopen(f"{address(output)}/readyz") as response:
            assert response.status == 200
        assert "sessionid" in cookie_names_after(link(output))
        assert "sessionid" not in cookie_names_after(link(output))  # it was used
        assert server.stop(signal.SIGINT) == 0
        assert "Traceback" not in server.output
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600
    key = (home / "secret_key").read_text()

    with up(clean_environment) as server:
        output = server.read_until("Ctrl-C")
        assert "password" not in output
        assert "sessionid" in cookie_names_after(link(output))
        assert server.stop(signal.SIGTERM) == 0
    assert (home / "secret_key").read_text() == key


def test_it_ends_though_a_block_would_take_long_and_gives_its_run_back(
    clean_environment: dict[str, str],
) -> None:
    start = (
        "from workflows_app import services; "
        'text = \'version: "1.0"\\nblocks: {nap: {type: code, timeout_seconds: 300, '
        'code: "import time\\\\ndef main(data):\\\\n    time.sleep(250)"}}\\n\'; '
        "print(services.start_run(services.save_version('nap', text).workflow, {}).pk)"
    )
    look = (
        "from django.utils import timezone; from workflows_app.models import Run; run = Run.objects.get(); "
        "nodes = [node.status for node in run.nodes.all()]; free = not run.lease_expires_at or run.lease_expires_at < timezone.now(); "
        "print(run.status, 'free' if free else 'owned', *nodes)"
    )
    environment = {**clean_environment, "RUNSIGHT_DEMO": "0"}
    with up(environment) as server:
        server.read_until("Ctrl-C")
        shell(environment, start)
        deadline = time.monotonic() + 60
        while shell(environment, look) != "running owned running":
            assert time.monotonic() < deadline
        assert server.stop(signal.SIGTERM) == 0
        assert "Traceback" not in server.output
    assert shell(environment, look).startswith("running free")


NAP = 'version: "1.0"\nblocks: {nap: {type: code, timeout_seconds: 300, code: "import time\\ndef main(data):\\n    time.sleep(250)"}}\n'
PARENT = 'version: "1.0"\nblocks: {call: {type: workflow, workflow_ref: nap}}\n'


def test_it_ends_at_once_though_a_child_run_would_take_long(clean_environment: dict[str, str]) -> None:
    start = (
        f"from workflows_app import services; services.save_version('nap', {NAP!r}); "
        f"services.start_run(services.save_version('parent', {PARENT!r}).workflow, {{}})"
    )
    look = (
        "from workflows_app.models import Run; "
        "print(*[node.status for run in Run.objects.order_by('depth') for node in run.nodes.all()])"
    )
    environment = {**clean_environment, "RUNSIGHT_DEMO": "0"}
    with up(environment) as server:
        server.read_until("Ctrl-C")
        shell(environment, start)
        deadline = time.monotonic() + 60
        while shell(environment, look) != "running running":
            assert time.monotonic() < deadline
        began = time.monotonic()
        assert server.stop(signal.SIGTERM) == 0
        assert time.monotonic() - began < 8
        assert "Traceback" not in server.output


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


def cookie_names_after(url: str) -> set[str]:
    """The cookies after opening a link, without following where it leads."""
    jar = CookieJar()
    with pytest.raises(HTTPError) as redirect:
        build_opener(HTTPCookieProcessor(jar), NoRedirect()).open(url)
    assert redirect.value.code == 302
    redirect.value.close()
    return {cookie.name for cookie in jar}


def test_given_password_is_taken_and_never_printed(clean_environment: dict[str, str]) -> None:
    environment = {**clean_environment, "RUNSIGHT_ADMIN_PASSWORD": "a secret of mine"}
    with up(environment) as server:
        output = server.read_until("Ctrl-C")
        assert "RUNSIGHT_ADMIN_PASSWORD" in output
        server.stop(signal.SIGINT)
    assert "a secret of mine" not in server.output
    check = (
        "from django.contrib.auth.models import User; "
        "print(User.objects.get(username='admin').check_password('a secret of mine'))"
    )
    assert shell(environment, check) == "True"


def test_busy_port_is_a_sentence(clean_environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run({**clean_environment, "PORT": str(port)})
    assert result.returncode == 1
    assert f"PORT: {port} on 127.0.0.1 is in use" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("HOST", "203.0.113.7", "HOST: '203.0.113.7' is reached by other machines"),
        ("RUNSIGHT_HOME", "/proc/nowhere", "RUNSIGHT_HOME: the folder '/proc/nowhere' cannot be made"),
        ("PORT", "eighty", "PORT: 'eighty' is not valid; use a number from 0 to 65535."),
    ],
)
def test_wrong_setting_is_a_sentence(
    clean_environment: dict[str, str], variable: str, value: str, sentence: str
) -> None:
    result = run({**clean_environment, variable: value})
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=60, cwd=os.sep)
