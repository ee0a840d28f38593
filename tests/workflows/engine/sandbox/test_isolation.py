"""Code that tries to get out: at the server's secrets, the network, other processes, the disk."""

import os
import platform
import shutil
import socket
import tempfile
import time
from pathlib import Path

import pytest

from tests.timing import wait_until
from tests.workflows.engine.sandbox.sandboxes import STRENGTHS, descendants, run, start
from workflows_app.engine.sandbox.results import CodeLimits

STRONG = ["all layers", "namespaces only", "no namespaces"]
MB = 1024 * 1024


@pytest.fixture(scope="module")
def started():
    boxes = {}
    yield (
        lambda strength: (
            boxes.setdefault(strength, None) or boxes.update({strength: start(strength)}) or boxes[strength]
        )
    )
    for box in boxes.values():
        if box is not None:
            box.close()


@pytest.fixture(params=STRENGTHS)
def any_sandbox(request, started):
    return started(request.param)


@pytest.fixture(params=STRONG)
def strong_sandbox(request, started):
    return started(request.param)


@pytest.fixture
def weak_sandbox(started):
    """One without the layers under test: it shows that the attack works where nothing stops it."""
    return started("limits only")


@pytest.fixture
def open_folder():
    """A folder whose files everyone may read, so that only the sandbox can be what refuses."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


READ = "return open(data['path'], 'rb').read(16).hex()"


@pytest.mark.parametrize("name", ["db.sqlite3", "secret_key"])
def test_files_of_the_server_cannot_be_read(strong_sandbox, weak_sandbox, open_folder, name):
    secret = open_folder / name
    secret.write_text("the crown jewels")
    secret.chmod(0o644)
    assert run(weak_sandbox, READ, {"path": str(secret)}).status == "ok"
    result = run(strong_sandbox, READ, {"path": str(secret)})
    assert result.error_type in ("FileNotFoundError", "PermissionError"), result


def test_server_environment_cannot_be_read(any_sandbox):
    for path in (f"/proc/{os.getpid()}/environ", f"/proc/{os.getpid()}/mem", f"/proc/{os.getpid()}/cmdline"):
        if path.endswith("cmdline") and not (
            any_sandbox.isolation.namespaces or any_sandbox.isolation.landlock
        ):
            continue
        result = run(any_sandbox, READ, {"path": path})
        assert result.error_type in ("FileNotFoundError", "PermissionError", "OSError"), (path, result)


def test_own_environment_is_empty(any_sandbox, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    body = "import ctypes, os\nctypes.CDLL(None).getenv.restype = ctypes.c_char_p\n"
    result = run(
        any_sandbox, body + "return [dict(os.environ), repr(ctypes.CDLL(None).getenv(b'OPENAI_API_KEY'))]"
    )
    assert result.output == [{}, "0"]


def test_no_descriptor_of_the_server_is_open(any_sandbox):
    body = (
        "import os\nfound = []\nfor fd in range(4096):\n    try: os.fstat(fd); found.append(fd)\n"
        "    except OSError: pass\nreturn found"
    )
    assert run(any_sandbox, body).output == [0, 1, 2, 100]


def test_nothing_can_be_written_outside_the_own_folder(strong_sandbox, weak_sandbox, open_folder):
    open_folder.chmod(0o777)
    write = "open(data['path'], 'w').write('x')\nreturn 1"
    assert run(weak_sandbox, write, {"path": str(open_folder / "weak")}).status == "ok"
    result = run(strong_sandbox, write, {"path": str(open_folder / "strong")})
    assert result.error_type in ("FileNotFoundError", "PermissionError"), result
    assert not (open_folder / "strong").exists()


@pytest.mark.parametrize("path", ["/x", "/usr/lib/x", "/dev/x", "/etc/x", "/proc/self/mem", "/sys/x"])
def test_system_folders_are_read_only(any_sandbox, path):
    result = run(any_sandbox, "open(data['path'], 'w')\nreturn 1", {"path": path})
    if path == "/proc/self/mem" and not (any_sandbox.isolation.namespaces or any_sandbox.isolation.landlock):
        return
    assert result.error_type in ("FileNotFoundError", "PermissionError", "OSError"), result


CONNECT = (
    "import socket\nwith socket.socket() as s:\n    s.settimeout(2)\n"
    "    s.connect(('127.0.0.1', data['port']))\n    return 'connected'"
)


def test_loopback_cannot_be_reached(strong_sandbox, weak_sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        data = {"port": server.getsockname()[1]}
        control = run(weak_sandbox, CONNECT, data)
        if control.error_type == "ModuleNotFoundError":
            pytest.skip("the interpreter's library cannot be read by other users")
        assert control.output == "connected", control
        result = run(strong_sandbox, CONNECT, data)
    assert result.status == "error"
    assert result.error_type in ("PermissionError", "OSError"), result


@pytest.mark.parametrize(
    "family", ["AF_INET, SOCK_DGRAM", "AF_INET6, SOCK_STREAM", "AF_UNIX, SOCK_STREAM", "AF_NETLINK, SOCK_RAW"]
)
def test_no_socket_of_any_kind_under_the_filter(started, family):
    names = ", ".join(f"socket.{part.strip()}" for part in family.split(","))
    result = run(started("all layers"), f"import socket\nsocket.socket({names})\nreturn 1")
    assert result.error_type == "PermissionError", result


def test_unix_sockets_of_the_machine_cannot_be_reached(strong_sandbox, open_folder):
    path = str(open_folder / "server.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(path)
        Path(path).chmod(0o777)
        body = "import _socket\na, b = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_DGRAM)\na.sendto(b'x', data['path'])"
        assert run(strong_sandbox, body, {"path": path}).status == "error"


FORK_BOMB = """
import os, time
made = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
    except OSError:
        return made
"""


def test_fork_bomb_is_bounded_and_cleared(any_sandbox):
    before = descendants(os.getpid())
    result = run(any_sandbox, FORK_BOMB, timeout_seconds=20)
    assert result.status == "ok", result
    bound = CodeLimits().processes
    if not any_sandbox.isolation.namespaces and not any_sandbox.isolation.own_uid:
        bound += 10_000  # counted with the user's other processes
    assert result.output < bound
    wait_until(lambda: descendants(os.getpid()) <= before)


def test_thread_bomb_is_bounded(any_sandbox):
    body = (
        "import _thread, time\ncount = 0\ntry:\n    while count < 2000:\n"
        "        _thread.start_new_thread(time.sleep, (30,))\n        count += 1\n"
        "except (RuntimeError, MemoryError): pass\nreturn count"
    )
    result = run(any_sandbox, body)
    assert 0 < result.output < 2000


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(0.02)
    os._exit(0)
os.wait()
{then}
"""


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("return 1", "ok"),
        ("while True: time.sleep(1)", "timeout"),
        ("1/0", "error"),
        ("os._exit(0)", "error"),
    ],
)
@pytest.mark.parametrize("strength", ["all layers", "namespaces only", "limits only"])
def test_daemonised_grandchild_dies_with_the_block(started, strength, then, status):
    sandbox = started(strength)
    before = descendants(os.getpid())
    result = run(sandbox, DAEMON.format(then=then), timeout_seconds=1 if status == "timeout" else 20)
    assert result.status == status, result
    wait_until(lambda: descendants(os.getpid()) <= before)


def test_without_a_pid_namespace_the_filter_refuses_new_processes(started):
    result = run(started("no namespaces"), "import os\nos.fork()")
    assert result.error_type == "PermissionError"


def test_other_processes_cannot_be_signalled(any_sandbox):
    isolation = any_sandbox.isolation
    if not (isolation.namespaces or isolation.landlock or isolation.seccomp or isolation.own_uid):
        pytest.skip("without root and without any layer a block can signal its own user's processes")
    for call in ("os.kill(data['pid'], 0)", "os.kill(data['zygote'], 9)"):
        data = {"pid": os.getpid(), "zygote": any_sandbox.pid}
        result = run(any_sandbox, f"import os\n{call}\nreturn 1", data)
        assert result.error_type in ("ProcessLookupError", "PermissionError"), (call, result)
    assert run(any_sandbox, "return 1").output == 1


def test_its_own_group_is_of_its_own_processes(any_sandbox):
    zygote = any_sandbox.pid
    assert run(any_sandbox, "import os\nreturn os.getsid(0) == os.getpgid(0) == os.getpid()").output is True
    handler = "import os, signal\nsignal.signal(15, signal.SIG_IGN)\n"
    run(any_sandbox, handler + "os.kill(0, 15)\nreturn 1")
    assert run(any_sandbox, "return 1").output == 1
    assert any_sandbox.pid == zygote


# Through ctypes: the interpreter's other extension modules may be closed to the block's user.
LIBC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
reader, writer = os.pipe()
target = ctypes.byref(ctypes.c_int(data['pid']))
if libc.{call} < 0:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
return 1
"""


@pytest.mark.parametrize(
    "call",
    [
        "fcntl(reader, 8, data['pid'])",
        "fcntl(reader, 10, 9)",
        "fcntl(reader, 15, (ctypes.c_int * 2)(1, data['pid']))",
        "ioctl(100, 0x8901, target)",
        "ioctl(100, 0x8902, target)",
        "sched_setaffinity(data['pid'], 8, (ctypes.c_ulong * 1)(1))",
        "sched_setscheduler(data['pid'], 5, ctypes.byref(ctypes.c_int(0)))",
        "setpriority(0, data['pid'], 19)",
        "setpriority(2, 0, 19)",
        "syscall(data['ioprio_set'], 3, 0, 0)",
    ],
    ids=[
        "F_SETOWN",
        "F_SETSIG",
        "F_SETOWN_EX",
        "FIOSETOWN",
        "SIOCSPGRP",
        "affinity",
        "scheduler",
        "priority",
        "user",
        "ioprio",
    ],
)
def test_other_processes_cannot_be_slowed_or_made_targets(started, call):
    data = {"pid": os.getpid(), "ioprio_set": 251 if platform.machine() == "x86_64" else 30}
    result = run(started("no namespaces"), LIBC.format(call=call), data)
    assert result.error_type == "PermissionError", result


@pytest.mark.parametrize("call", ["fcntl(reader, 3)", "sched_yield()", "ioctl(reader, 0x541B, target)"])
def test_harmless_calls_of_the_same_kind_work(started, call):
    assert run(started("no namespaces"), LIBC.format(call=call), {"pid": 1}).output == 1


def test_killing_all_it_can_see_harms_only_itself(started):
    sandbox = started("all layers")
    zygote = sandbox.pid
    run(sandbox, "import os\nos.kill(-1, 9)\nos.kill(os.getpid(), 9)\nreturn 1")
    assert run(sandbox, "return 1").output == 1
    assert sandbox.pid == zygote


@pytest.mark.parametrize(
    "body",
    [
        "import os\nos.execv('/bin/sh', ['sh', '-c', 'true'])",
        "import ctypes\nif ctypes.CDLL(None, use_errno=True).ptrace(16, 1, 0, 0) < 0: raise PermissionError",
        "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000) < 0: raise PermissionError",
        "import ctypes\nif ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) < 0: raise PermissionError",
        "import os\nos.setuid(0)",
        "import os\nos.memfd_create('x')",
        "import ctypes\nif ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) < 0: raise PermissionError",
    ],
    ids=["exec", "ptrace", "unshare", "mount", "setuid", "memfd", "death signal"],
)
def test_filter_refuses(started, body):
    result = run(started("all layers"), body)
    assert result.error_type == "PermissionError" or "Invalid argument" in result.error_message, result


def test_memory_bomb_is_stopped(any_sandbox):
    result = run(any_sandbox, "keep = []\nwhile True: keep.append(bytearray(10_000_000))")
    assert (result.status, result.error_type, result.line) == ("limit", "MemoryError", 3)
    assert "512 MB" in result.error_message
    assert result.max_rss_kb < 700 * 1024


def test_memory_limit_can_be_chosen(any_sandbox):
    limits = CodeLimits(memory_bytes=128 * MB)
    assert run(any_sandbox, "return len(bytearray(200_000_000))", limits=limits).status == "limit"
    assert run(any_sandbox, "return len(bytearray(200_000_000))").status == "ok"


def test_large_file_is_refused(any_sandbox):
    body = "with open('big', 'wb') as f:\n    while True: f.write(bytes(1_000_000))"
    result = run(any_sandbox, body)
    assert result.error_type == "OSError"
    assert "File too large" in result.error_message


def test_disk_cannot_be_filled_by_many_files(started):
    body = (
        "import os\ntotal = 0\ntry:\n    for n in range(1000):\n        with open(f'f{n}', 'wb') as f:\n"
        "            f.write(bytes(8_000_000))\n        total += 8\nexcept OSError as e: return [total, e.strerror]"
    )
    total, reason = run(started("all layers"), body, timeout_seconds=30).output
    assert total <= 64
    assert reason == "No space left on device"


def test_open_files_are_limited(any_sandbox):
    body = "keep = []\ntry:\n    while True: keep.append(open('/dev/null'))\nexcept OSError as e: return [len(keep), e.errno]"
    count, code = run(any_sandbox, body).output
    assert count < CodeLimits().open_files
    assert code == 24


def test_folder_is_gone_afterwards(any_sandbox, open_folder):
    body = (
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\nos.symlink(data['outside'], 'a/link')\n"
        "os.chmod('a/b', 0)\nos.chmod('a', 0)\nhere = os.getcwd()\n"
        "try: os.chmod('.', 0)\nexcept PermissionError: pass\nreturn here"
    )
    (open_folder / "kept").touch()
    mode = open_folder.stat().st_mode
    result = run(any_sandbox, body, {"outside": str(open_folder)})
    assert result.status == "ok", result
    assert result.output == "/tmp" or not Path(result.output).exists()
    assert (open_folder / "kept").exists()
    assert open_folder.stat().st_mode == mode


def test_endless_printing_is_bounded(any_sandbox):
    result = run(any_sandbox, "while True: print('spam' * 100)", timeout_seconds=0.5)
    assert result.status == "timeout"
    assert len(result.stdout) <= CodeLimits().stdout_bytes


FORGED = [
    # what the code writes to its channel                            status     output / error type
    (r"b'garbage' * 1000", "error", "MalformedResult"),
    (r"b'R' + (5).to_bytes(4, 'big') + b'\xff\xfe\xfd\xfc\xfb'", "error", "MalformedResult"),
    (r"b'R' + (3).to_bytes(4, 'big') + b'NaN'", "error", "MalformedResult"),
    (r"b'R' + (8).to_bytes(4, 'big') + b'\"\\ud800\"'", "error", "MalformedResult"),
    (r"b'R' + (200000).to_bytes(4, 'big') + b'[' * 200000", "error", "MalformedResult"),
    (r"b'R' + (2**31).to_bytes(4, 'big')", "error", "MalformedResult"),
    (r"b'E' + (2).to_bytes(4, 'big') + b'[]'", "error", "MalformedResult"),
    (r"b'O' + (1_000_000).to_bytes(4, 'big') + b'x' * 1_000_000", "limit", "OutputTooLarge"),
    (r"b'R' + (9).to_bytes(4, 'big')", "error", "ProcessExit"),
]


@pytest.mark.parametrize(("frame", "status", "kind"), FORGED, ids=[row[0][:40] for row in FORGED])
def test_forged_frames_are_refused(started, frame, status, kind):
    body = f"import os\ntext = {frame}\nwhile text: text = text[os.write(100, text):]\nos._exit(0)"
    result = run(started("all layers"), body)
    assert (result.status, result.error_type) == (status, kind), result


def test_flood_on_the_channel_is_cut_off(started):
    started_at = time.monotonic()
    body = "import os\nframe = b'R' + (1).to_bytes(4, 'big') + b'1'\nwhile True: os.write(100, frame * 10000)"
    assert run(started("all layers"), body, timeout_seconds=30).output == 1  # its own result, and no more
    assert time.monotonic() - started_at < 5
