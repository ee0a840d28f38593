"""What code gives back, and how its errors are reported."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.timing import PROMPTLY
from tests.workflows.engine.sandbox.sandboxes import run
from workflows_app.engine.sandbox.client import Sandbox
from workflows_app.engine.sandbox.results import CodeLimits


@pytest.fixture(scope="module")
def sandbox():
    box = Sandbox()
    yield box
    box.close()


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1.5, "", "naïve 日本 \U0001f600", [], {}, {"a": [1, {"b": None}]}, 2**80, "x" * 900_000],
    ids=lambda value: repr(value)[:20],
)
def test_data_goes_in_and_comes_back_unchanged(sandbox, value):
    result = run(sandbox, "return data['value']", {"value": value})
    assert result.status == "ok", result.error
    assert result.output == value
    assert type(result.output) is type(value)


def test_large_data_reaches_the_code(sandbox):
    result = run(sandbox, "return len(data['text'])", {"text": "y" * 8_000_000})
    assert result.output == 8_000_000


def test_result_carries_duration_and_memory(sandbox):
    result = run(sandbox, "import time\ntime.sleep(0.05)\nreturn len(bytearray(40_000_000))")
    assert result.duration_ms >= 50
    assert result.max_rss_kb > 40_000


def test_data_that_is_not_json_is_an_error(sandbox):
    result = run(sandbox, "return 1", {"value": float("nan")})
    assert (result.status, result.error_type) == ("error", "BadInput")


FAULTY = [
    # body                                        status   error_type           in the message             line
    ("x = 1\nreturn x / 0", "error", "ZeroDivisionError", "division by zero", 3),
    ("return data['nope']", "error", "KeyError", "nope", 2),
    ("return float('nan')", "error", "NotJSON", "NaN", None),
    ("return {'a': [float('inf')]}", "error", "NotJSON", "infinity", None),
    ("return {1, 2}", "error", "NotJSON", "set is not JSON serializable", None),
    ("return object()", "error", "NotJSON", "object", None),
    ("a = []\na.append(a)\nreturn a", "error", "NotJSON", "Circular", None),
    ("return '\\ud800'", "error", "NotJSON", "surrogate", None),
    ("return 'x' * 1_048_577", "limit", "OutputTooLarge", "1,048,576", None),
    ("import sys\nsys.exit(3)", "error", "SystemExit", "sys.exit(3)", 3),
    ("import os\nos._exit(0)", "error", "ProcessExit", "exit code 0", None),
    ("import os\nos.abort()", "error", "ProcessDied", "ended by signal SIG", None),
    ("def f(): return f()\nreturn f()", "error", "RecursionError", "recursion", 2),
    ("import json\nreturn json.loads('{')", "error", "JSONDecodeError", "property name", 3),
    ("import nosuchmodule", "error", "ModuleNotFoundError", "nosuchmodule", 2),
    ("raise KeyboardInterrupt", "error", "KeyboardInterrupt", "", 2),
    (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        "error",
        "Odd",
        "could not",
        4,
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "kind", "message", "line"), FAULTY, ids=[row[0][:30] for row in FAULTY]
)
def test_fault_is_reported_with_its_line(sandbox, body, status, kind, message, line):
    result = run(sandbox, body)
    assert (result.status, result.error_type, result.line) == (status, kind, line)
    assert message in result.error_message
    assert result.output is None


def test_syntax_error_names_its_line(sandbox):
    result = sandbox.run("def main(data):\n    return (\n", {}, timeout_seconds=5)
    assert (result.error_type, result.line) == ("SyntaxError", 2)


def test_code_without_main_is_an_error(sandbox):
    result = sandbox.run("x = 1", {}, timeout_seconds=5)
    assert result.error_type == "NoMain"


def test_error_sentence_shows_the_line_of_code(sandbox):
    result = run(sandbox, "return 1 / 0")
    assert result.error == "ZeroDivisionError: division by zero (line 2: return 1 / 0)"


def test_dataclasses_and_asyncio_work_inside(sandbox):
    code = (
        "from __future__ import annotations\nimport asyncio, dataclasses\n"
        "@dataclasses.dataclass\nclass P:\n    x: int\n"
        "async def double(p): return p.x * 2\n"
        "def main(data): return asyncio.run(double(P(21)))\n"
    )
    assert sandbox.run(code, {}, timeout_seconds=10).output == 42


def test_stdlib_modules_can_be_imported(sandbox):
    result = run(
        sandbox, "import sqlite3, email.message, zipfile, wave\nreturn sqlite3.sqlite_version_info[0]"
    )
    assert result.output == 3, result.error


def test_printed_text_is_kept_up_to_a_limit(sandbox):
    result = run(sandbox, "print('first')\nprint('x' * 200_000)\nreturn 1")
    assert result.status == "ok"
    assert result.stdout.startswith("first\nxxx")
    assert len(result.stdout) == CodeLimits().stdout_bytes


def test_printed_text_survives_a_timeout(sandbox):
    result = run(sandbox, "print('one')\nprint('two')\nwhile True: pass", timeout_seconds=1)
    assert result.status == "timeout"
    assert result.stdout == "one\ntwo\n"


def test_endless_loop_is_stopped_in_time(sandbox):
    started = time.monotonic()
    result = run(sandbox, "while True: pass", timeout_seconds=0.4)
    assert result.status == "timeout"
    assert "0.4 seconds" in result.error_message
    assert time.monotonic() - started < PROMPTLY


def test_code_that_swallows_everything_is_still_stopped(sandbox):
    body = "import signal, time\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
    result = run(
        sandbox,
        body + "while True:\n    try: time.sleep(9)\n    except BaseException: pass",
        timeout_seconds=0.4,
    )
    assert result.status == "timeout"


@pytest.mark.parametrize("body", ["while True: pass", "import time\ntime.sleep(60)"])
def test_cancelling_takes_effect_promptly(sandbox, body):
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    started = time.monotonic()
    result = run(sandbox, body, timeout_seconds=60, cancelled=stop.is_set)
    assert result.status == "cancelled"
    assert time.monotonic() - started < PROMPTLY


def test_cancelling_takes_a_function_too(sandbox):
    assert run(sandbox, "while True: pass", timeout_seconds=60, cancelled=lambda: True).status == "cancelled"


def test_result_wins_over_a_thread_that_goes_on(sandbox):
    body = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nreturn 'done'"
    started = time.monotonic()
    assert run(sandbox, body).output == "done"
    assert time.monotonic() - started < 5


def test_nothing_passes_from_one_run_to_the_next(sandbox):
    leave = "import json, builtins, os\njson.secret = builtins.secret = 1\nos.environ['A'] = 'b'\nopen('left', 'w').write('x')\nreturn 1"
    look = "import json, builtins, os\nreturn [hasattr(json, 'secret'), hasattr(builtins, 'secret'), dict(os.environ), os.listdir('.')]"
    assert run(sandbox, leave).status == "ok"
    assert run(sandbox, look).output == [False, False, {}, []]


def test_random_numbers_differ_from_run_to_run(sandbox):
    body = "import random, uuid\nreturn [random.random(), str(uuid.uuid4())]"
    one, two = run(sandbox, body).output, run(sandbox, body).output
    assert one[0] != two[0]
    assert one[1] != two[1]


def test_many_threads_get_each_their_own_answer(sandbox):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: run(sandbox, "return data['n'] * 2", {"n": n}), range(80)))
    assert [result.output for result in results] == [n * 2 for n in range(80)]


def test_a_slow_block_does_not_hold_up_others(sandbox):
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(run, sandbox, "import time\ntime.sleep(2)\nreturn 'slow'") for _ in range(3)]
        assert run(sandbox, "return 'quick'").output == "quick"
        assert not any(future.done() for future in slow)
        assert [future.result().output for future in slow] == ["slow"] * 3


def test_a_block_costs_less_than_an_interpreter(sandbox):
    """Compared with each other, since both are slow on a busy machine."""

    def median(once):
        times = []
        for _ in range(15):
            started = time.perf_counter()
            once()
            times.append(time.perf_counter() - started)
        return sorted(times)[7]

    run(sandbox, "return 1")
    fresh = median(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "import json"], check=True))
    assert median(lambda: run(sandbox, "return 1")) < fresh
