"""Zygotes that die, servers that are killed, forks, threads, other users, other systems."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.timing import wait_until
from tests.workflows.engine.sandbox.sandboxes import STRENGTHS, descendants, run, start
from workflows_app.engine.sandbox.client import Sandbox, SandboxUnavailable
from workflows_app.engine.sandbox.inside.confine import Isolation
from workflows_app.engine.sandbox.report import isolation_report, layers_of

ROOT = Path(__file__).parents[4]


@pytest.fixture(params=["all layers", "limits only"])
def sandbox(request):
    box = start(request.param)
    yield box
    box.close()


def zygote_pids(sandbox):
    outer = sandbox.pid
    return {outer} | descendants(outer) if outer else set()


def test_killed_zygote_is_replaced(sandbox):
    assert run(sandbox, "return 1").output == 1
    first = sandbox.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first))
    assert run(sandbox, "return 2").output == 2
    assert sandbox.pid != first


def test_zygote_killed_during_a_run_takes_the_block_along_and_it_runs_again(sandbox):
    with ThreadPoolExecutor(3) as pool:
        body = "import time\ntime.sleep(1.5)\nreturn 'done'"
        futures = [pool.submit(run, sandbox, body) for _ in range(3)]
        wait_until(lambda: len(zygote_pids(sandbox)) >= 4)
        pids = zygote_pids(sandbox)
        os.kill(sandbox.pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in pids))
        assert [future.result().output for future in futures] == ["done"] * 3


def test_time_out_as_the_default_of_new_sockets_does_not_reach_the_block(sandbox):
    socket.setdefaulttimeout(5)  # as Celery does while it shuts down
    try:
        results = [run(sandbox, "return len(data['text'])", {"text": "x" * 5_000_000}) for _ in range(10)]
    finally:
        socket.setdefaulttimeout(None)
    assert [result.output for result in results] == [5_000_000] * 10


def test_close_ends_everything(sandbox):
    with ThreadPoolExecutor(1) as pool:
        stop = threading.Event()
        pool.submit(run, sandbox, "import time\ntime.sleep(30)", cancelled=stop.is_set)
        wait_until(lambda: len(zygote_pids(sandbox)) >= 2)
        pids = zygote_pids(sandbox)
        stop.set()
        sandbox.close()
        wait_until(lambda: not any(alive(pid) for pid in pids))


def test_forgotten_sandbox_ends_its_zygote():
    sandbox = Sandbox()
    run(sandbox, "return 1")
    pids = zygote_pids(sandbox)
    del sandbox
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_interpreter_that_cannot_start_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(SandboxUnavailable, match="could not be started"):
        Sandbox().run("def main(data): return 1", {}, timeout_seconds=1)


def test_interpreter_that_is_none_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(SandboxUnavailable, match="did not start"):
        Sandbox().run("def main(data): return 1", {}, timeout_seconds=1)


SERVER = """
import sys, threading, time
sys.path.insert(0, {root!r})
from workflows_app.engine.sandbox.client import Sandbox
sandbox = Sandbox(without=frozenset({without!r}))
code = '''
import os, time
def main(data):
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True: time.sleep(0.05)
            os._exit(0)
    except OSError: pass
    while True: pass
'''
for _ in range(3):
    # The threads that start the zygote and the runs are not the main one, as in a real server.
    threading.Thread(target=sandbox.run, args=(code, {{}}), kwargs={{"timeout_seconds": 120}}).start()
time.sleep(60)
"""


@pytest.mark.parametrize("strength", STRENGTHS)
def test_no_process_is_left_when_the_server_is_killed(strength):
    without = sorted(STRENGTHS[strength])
    script = SERVER.format(root=str(ROOT), without=without)
    server = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: len(descendants(server.pid)) >= 4)
    pids = descendants(server.pid)
    server.kill()
    server.wait()
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_zygote_outlives_the_thread_that_started_it():
    sandbox = Sandbox()
    thread = threading.Thread(target=run, args=(sandbox, "return 1"))
    thread.start()
    thread.join()
    first = sandbox.pid
    wait_until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())
    assert run(sandbox, "return 2").output == 2
    assert sandbox.pid == first
    sandbox.close()


FORKING = """
import os, sys
sys.path.insert(0, {root!r})
from workflows_app.engine.sandbox.client import Sandbox
sandbox = Sandbox()
def ask(n): return sandbox.run("def main(data): return data['n']", {{"n": n}}, timeout_seconds=10).output
assert ask(1) == 1
outer = sandbox.pid
child = os.fork()
if child == 0:
    ok = ask(2) == 2 and sandbox.pid != outer
    sandbox.close()
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert ask(3) == 3 and sandbox.pid == outer
print("fine")
"""


def test_forked_worker_gets_a_zygote_of_its_own():
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING.format(root=str(ROOT))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (answer.stdout, answer.stderr) == ("fine\n", "")


UNPRIVILEGED = """
import json, os, sys, socket
sys.dont_write_bytecode = True
sys.path.insert(0, {root!r})
from workflows_app.engine.sandbox.client import Sandbox
os.environ["TOKEN"] = "secret"
open(sys.argv[1] + "/db", "w").write("jewels")
server = socket.create_server(("127.0.0.1", 0))
tries = {{
    "works": "import statistics, sqlite3; open('own', 'w').write('x'); return open('own').read()",
    "file": "return open(data['file']).read()",
    "environ": "return open(f'/proc/{{data[\\"pid\\"]}}/environ').read()",
    "signal": "import os; os.kill(data['pid'], 0)",
    "network": "import socket; s = socket.socket(); s.connect(('127.0.0.1', data['port']))",
    "memory": "return len(bytearray(1_000_000_000))",
}}
data = {{"file": sys.argv[1] + "/db", "pid": os.getpid(), "port": server.getsockname()[1]}}
found = {{}}
for strength, without in {strengths!r}.items():
    sandbox = Sandbox(without=frozenset(without))
    found[strength] = {{"isolation": sandbox.isolation.namespaces, "missing": sandbox.isolation.missing}}
    for name, body in tries.items():
        result = sandbox.run("def main(data):\\n " + body, data, timeout_seconds=10)
        found[strength][name] = result.error_type or result.output
    sandbox.close()
server.close()
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=["ordinary user", "root without CAP_SYS_ADMIN"])
def unprivileged(request, tmp_path_factory):
    """What a server with fewer rights can cut off, at each strength."""
    folder = tmp_path_factory.mktemp("unprivileged")
    python, prefix, user = sys.executable, [], {}
    if request.param != "ordinary user":
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            pytest.skip("needs root and setpriv to give up a capability")
        prefix = ["setpriv", "--bounding-set=-sys_admin"]
    elif os.geteuid() == 0:
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    if os.geteuid() == 0:
        folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
        folder.chmod(0o755)
        python = public_python()
    if user:
        os.chown(folder, 65534, 65534)
    strengths = {name: sorted(without) for name, without in STRENGTHS.items()}
    script = UNPRIVILEGED.format(root=str(ROOT), strengths=strengths)
    command = [*prefix, python, "-c", script, str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, **user)
    shutil.rmtree(folder)
    assert answer.stderr == ""
    return json.loads(answer.stdout)


def public_python():
    """Find an interpreter, and a checkout, that every user can read."""
    python = "/usr/bin/python3"
    probe = f"import sys; assert sys.version_info >= (3, 11); open({str(ROOT / 'pyproject.toml')!r})"
    if (
        not Path(python).exists()
        or subprocess.run([python, "-c", probe], user=65534, capture_output=True).returncode
    ):
        pytest.skip("no interpreter, or no checkout, that another user can read")
    return python


REFUSED = {"FileNotFoundError", "PermissionError", "ProcessLookupError", "OSError"}


@pytest.mark.parametrize("strength", ["all layers", "namespaces only", "no namespaces"])
def test_server_with_fewer_rights_cuts_off_as_well(unprivileged, strength):
    found = unprivileged[strength]
    missing = (set(found["missing"]) & {"namespaces", "landlock", "seccomp"}) - STRENGTHS[strength]
    if missing:
        pytest.skip(f"this system gives such a server no {', '.join(sorted(missing))}")
    assert found["works"] == "x"
    assert {found[name] for name in ("file", "environ", "signal", "network")} <= REFUSED
    assert found["memory"] == "MemoryError"


def test_weakest_server_still_hides_its_environment(unprivileged):
    found = unprivileged["limits only"]
    assert found["works"] == "x"
    assert found["file"] == "jewels"  # and the report says so
    assert found["environ"] == "PermissionError"
    assert found["memory"] == "MemoryError"


def test_server_that_uses_the_sandbox_is_closed_to_its_own_user():
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT)!r})
from workflows_app.engine.sandbox.client import Sandbox, harden_parent
is_open = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
before = is_open()
Sandbox()
print(before, is_open(), harden_parent())
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout == "1 0 True\n", answer.stderr


def test_report_says_what_holds_here():
    layers = {layer.name: layer for layer in isolation_report()}
    assert {"files", "network", "processes", "user", "system calls", "own folder"} <= set(layers)
    for layer in layers.values():
        assert layer.sentence.endswith(".")
        assert layer.is_full != layer.sentence.startswith("weaker")


def test_report_where_no_zygote_starts_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    (layer,) = isolation_report.__wrapped__()
    assert not layer.is_full
    assert "none can run" in layer.sentence


def test_folders_of_dead_zygotes_are_cleared():
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = Path(tempfile.gettempdir(), f"runsight-code-{gone.pid}-abc")
    kept = Path(tempfile.gettempdir(), f"runsight-code-{os.getpid()}-abc")
    (left / "inner").mkdir(parents=True)
    kept.mkdir()
    sandbox = Sandbox()
    try:
        assert sandbox.isolation
        assert not left.exists()
        assert kept.exists()
    finally:
        sandbox.close()
        kept.rmdir()


def test_report_on_a_system_that_offers_nothing_says_weaker_and_why():
    missing = dict.fromkeys(("namespaces", "landlock", "seccomp"), "not offered by this operating system")
    layers = {layer.name: layer for layer in layers_of(Isolation(missing=missing), is_parent_hard=False)}
    weak = {name for name, layer in layers.items() if not layer.is_full}
    assert weak == {"files", "network", "processes", "own folder", "user", "system calls", "server's memory"}
    assert "not offered by this operating system" in layers["files"].sentence
    assert "secret key" in layers["files"].sentence


def test_report_prefers_the_layer_that_is_there():
    layers = {
        layer.name: layer for layer in layers_of(Isolation(seccomp=True, landlock=3), is_parent_hard=True)
    }
    assert layers["network"].sentence.startswith("cut off by refusing every socket")
    assert "Landlock" in layers["files"].sentence


def test_no_layer_and_no_crash_where_the_system_is_not_linux():
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(ROOT / "workflows_app/engine/sandbox")!r})
        sys.platform = "darwin"
        from inside import linux, probe
        isolation = probe.find_isolation()
        assert not (isolation.namespaces or isolation.landlock or isolation.seccomp or isolation.no_new_privs)
        try: linux.prctl(1)
        except OSError as fault: print(fault)
    """)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout == "darwin is not Linux\n", answer.stderr


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
