"""What the engine itself costs: per block, from request to completed, and runs per second.

SQLite on disk, the demo provider at zero latency. Run it with `make bench` or `python benchmarks/engine.py`.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

HOME = tempfile.mkdtemp(prefix="runsight-bench-")
os.environ.update(RUNSIGHT_HOME=HOME, DJANGO_SETTINGS_MODULE="runsight_site.settings", DATABASE_URL="")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402

from workflows_app import executors, services  # noqa: E402
from workflows_app.engine.providers import ChatRequest, ChatResponse  # noqa: E402
from workflows_app.engine.providers.demo import DemoProvider  # noqa: E402
from workflows_app.models import RunStatus, Workflow  # noqa: E402
from workflows_app.signals import run_finished  # noqa: E402

ASSERTIONS = """\
    assertions:
      - {type: not-contains, value: forbidden}
      - {type: regex, value: "[a-z]+"}
      - {type: word-count, value: {min: 1}}
      - {type: cost, threshold: 1}
      - {type: latency, threshold: 100000}
"""


def main() -> None:
    call_command("migrate", verbosity=0)
    executors.current = service = executors.ExecutionService(concurrency=8)
    quick = Timed(latency_scale=0.0)
    service.resources.provider = lambda *_: quick  # type: ignore[method-assign]
    service.start()
    rows: list[tuple[str, str, str]] = []
    for name, with_assertions, bound in (("bare", False, 3.0), ("five assertions each", True, 5.0)):
        workflow = save(f"chain-{len(name)}", chain(100, with_assertions))
        per_block = typical(7, lambda workflow=workflow: (timed_run(workflow) - quick.spent_ms()) / 100)
        rows.append(
            (
                f"100 llm blocks, {name}, without the model's own time",
                f"{per_block:.2f} ms a block",
                f"at most {bound:g} ms",
            )
        )
    for count, wanted in ((1, "–"), (10, "at most 250 ms")):
        workflow = save(f"code-{count}", code_chain(count))
        took = typical(9, lambda workflow=workflow: timed_run(workflow))
        rows.append((f"{count} code block(s), request to completed", f"{took:.0f} ms", wanted))
    one = save("code-1", code_chain(1))
    for flights in (1, 4, 8):
        found = statistics.median(rate(one, flights) for _ in range(3))
        wanted = "at least 30, not fewer than with 1" if flights == 8 else "–"
        rows.append((f"one-block code runs, {flights} in flight", f"{found:.0f} runs/s", wanted))
    print_table(("what", "measured", "wanted"), rows)
    service.stop()


class Timed(DemoProvider):
    """The demo model, which notes how long it thinks: that is not the engine's time."""

    name = "timed demo"
    seconds = 0.0

    def answer(self, request: ChatRequest) -> ChatResponse:
        begun = time.perf_counter()
        response = super().answer(request)
        self.seconds += time.perf_counter() - begun
        return response

    def spent_ms(self) -> float:
        """What it took since the last time somebody asked."""
        spent, self.seconds = self.seconds * 1000, 0.0
        return spent


def chain(count: int, with_assertions: bool) -> str:
    soul = "souls:\n  one: {role: Writer, system_prompt: You summarize., provider: demo, model_name: demo-small}\n"
    blocks = "".join(
        f"  b{n}:\n    type: llm\n    soul_ref: one\n    prompt: Say something about topic {n}\n"
        + (f"    depends: b{n - 1}\n" if n else "")
        + (ASSERTIONS if with_assertions else "")
        for n in range(count)
    )
    return f'version: "1.0"\n{soul}blocks:\n{blocks}'


def code_chain(count: int) -> str:
    blocks = "".join(
        f"  c{n}:\n    type: code\n    code: |\n      def main(data):\n          return {{'n': {n}}}\n"
        + (f"    depends: c{n - 1}\n" if n else "")
        for n in range(count)
    )
    return f'version: "1.0"\nblocks:\n{blocks}'


def save(slug: str, yaml: str) -> Workflow:
    return services.save_version(slug, yaml).workflow


def timed_run(workflow: Workflow) -> float:
    """Milliseconds from the request to `completed`, by the run's own clock: asking often would cost as much as it."""
    run = services.start_run(workflow, {})
    while not run.is_terminal:
        time.sleep(0.02)
        run.refresh_from_db(fields=["status", "finished_at"])
    assert run.status == RunStatus.COMPLETED, run.error
    assert run.finished_at is not None
    return (run.finished_at - run.created_at).total_seconds() * 1000


def rate(workflow: Workflow, flights: int, total: int = 80) -> float:
    """Runs per second with so many clients, each starting its next run when the last one is completed."""
    free = threading.Semaphore(flights)
    release = lambda **_: free.release()  # noqa: E731 - connected below, so it needs a name
    run_finished.connect(release, weak=False, dispatch_uid="rate")
    begun = time.perf_counter()
    for _ in range(total):
        free.acquire()
        services.start_run(workflow, {})
    for _ in range(flights):
        free.acquire()
    took = time.perf_counter() - begun
    run_finished.disconnect(dispatch_uid="rate")
    return total / took


def typical(times: int, measure: Callable[[], float]) -> float:
    """The median, after a first one that pays for imports and the zygote."""
    measure()
    return statistics.median(measure() for _ in range(times))


def print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    for row in (head, tuple("-" * width for width in widths), *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
