"""How long a trivial code block takes in the sandbox, against starting an interpreter for it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workflows_app.engine.sandbox.client import Sandbox
from workflows_app.engine.sandbox.report import isolation_report

CODE = "def main(data):\n    return data['n'] + 1\n"
FRESH = f"import json, sys\n{CODE}print(json.dumps(main(json.load(sys.stdin))))"
SECONDS = 3.0


def in_sandbox(sandbox: Sandbox) -> None:
    """Run one trivial block."""
    result = sandbox.run(CODE, {"n": 1}, timeout_seconds=10)
    assert result.output == 2, result


def in_fresh_interpreter() -> None:
    """Do the same without a zygote, and without any isolation."""
    command = [sys.executable, "-I", "-S", "-c", FRESH]
    answer = subprocess.run(command, input=b'{"n": 1}', capture_output=True, check=True)
    assert answer.stdout == b"2\n"


def latencies_ms(once: Callable[[], None], count: int) -> list[float]:
    """Time it that often, one after the other, sorted."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        once()
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)


def per_second(once: Callable[[], None], threads: int) -> float:
    """Count how many a number of threads get done."""
    end = time.perf_counter() + SECONDS

    def work() -> int:
        done = 0
        while time.perf_counter() < end:
            once()
            done += 1
        return done

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(lambda _: work(), range(threads)))
    return total / (time.perf_counter() - started)


def main() -> None:
    """Print the table."""
    started = time.perf_counter()
    sandbox = Sandbox()
    assert sandbox.isolation
    print(f"zygote started in {(time.perf_counter() - started) * 1000:.0f} ms")
    for layer in isolation_report():
        print(f"  {layer.name}: {layer.sentence}")
    rows = [
        ("sandbox", latencies_ms(lambda: in_sandbox(sandbox), 500), lambda: in_sandbox(sandbox)),
        ("fresh interpreter, no isolation", latencies_ms(in_fresh_interpreter, 60), in_fresh_interpreter),
    ]
    print(f"\n{'':32} {'p50 ms':>8} {'p99 ms':>8} {'1 thread/s':>11} {'4 threads/s':>12} {'8 threads/s':>12}")
    for name, times, once in rows:
        p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
        rates = "".join(f"{per_second(once, threads):12.0f}" for threads in (1, 4, 8))
        print(f"{name:32} {p50:8.2f} {p99:8.2f}{rates}")
    started = time.perf_counter()
    for _ in range(10):
        in_sandbox(sandbox)
    print(f"\n10 blocks one after the other: {(time.perf_counter() - started) * 1000:.0f} ms")
    sandbox.close()


if __name__ == "__main__":
    main()
