"""One fault each, played in a process and on a database of its own. Prints what was measured as JSON.

Usage: python -m tests.faults SCENARIO SIZE SEED, with the environment of the stack under test;
FAULT_SERVERS=redis,postgres starts servers that the scenario may kill.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

from tests.faults.servers import Server, start_own
from tests.timing import wait_until

# Servers to be killed belong to this process, and their addresses must be known to the settings.
SERVERS: dict[str, Server] = start_own(os.environ.get("FAULT_SERVERS", ""))

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "runsight_site.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from tests.faults.invariants import violations  # noqa: E402
from tests.faults.stack import Program, processes_of  # noqa: E402
from workflows_app import services  # noqa: E402
from workflows_app.models import Run, RunStatus, Workflow  # noqa: E402

STEPS = 8
# No run takes this long, unless somebody has the time wrong.
TIME_LIMIT_SECONDS = 900
CHAIN = f'version: "1.0"\nlimits: {{max_duration_seconds: {TIME_LIMIT_SECONDS}}}\nblocks:\n' + "".join(
    f"""\
  step{n}:
    type: code
    {f"depends: step{n - 1}" if n else ""}
    code: |
      import time
      def main(data):
          time.sleep(0.15)
          return {{"n": {n}}}
    assertions:
      - {{type: is-json}}
      - {{type: contains, value: "{n}"}}
"""
    for n in range(STEPS)
)

Scenario = Callable[["Lab"], dict[str, Any]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(play: Scenario) -> Scenario:
    SCENARIOS[play.__name__] = play
    return play


class Lab:
    """The stage: a migrated database, a workflow, the programs that were started and the runs that were accepted."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.chance = random.Random(seed)
        self.home = Path(os.environ["RUNSIGHT_HOME"])
        self.programs: list[Program] = []
        self.runs: list[Run] = []
        call_command("migrate", verbosity=0)
        self.chain = services.save_version("chain", CHAIN).workflow

    def started(self, program: Program) -> Program:
        self.programs.append(program)
        return program

    def start_runs(self, count: int, workflow: Workflow | None = None) -> list[Run]:
        fresh = [services.start_run(workflow or self.chain) for _ in range(count)]
        self.runs += fresh
        return fresh

    def wait_under_way(self, runs: list[Run], blocks: int = 1) -> None:
        """Until some run has finished a few blocks and is not over."""
        wait_until(
            lambda: self._of(runs).filter(status=RunStatus.RUNNING, nodes_done__gte=blocks).exists(),
            "a run runs",
        )

    def wait_over(self, runs: list[Run] | None = None, seconds: float = 90) -> float:
        """Until every run is over and acted on; how long that took."""
        rows = self._of(runs or self.runs)
        unfinished = rows.exclude(status__in=(RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED))
        return wait_until(
            lambda: not unfinished.exists() and not rows.filter(observed_at=None).exists(),
            "every run is over",
            seconds,
        )

    def wait_taken_over(self, run: Run, owner: str) -> float:
        """Until another process has the run; how long that took."""

        def is_elsewhere() -> bool:
            run.refresh_from_db()
            return run.owner != owner or run.is_terminal

        return wait_until(is_elsewhere, "another owner", 60)

    def _of(self, runs: list[Run]) -> Any:
        return Run.objects.filter(pk__in=[run.pk for run in runs])

    def end(self) -> dict[str, Any]:
        """Stop what runs, and look for broken promises."""
        found = violations(self.runs, TIME_LIMIT_SECONDS)
        exits = [program.stop() for program in self.programs if program.process.poll() is None]
        if any(exits):
            found.append(f"programs ended with {exits}")
        sessions = {program.process.pid for program in self.programs}
        deadline = time.monotonic() + 5
        while (left := processes_of(sessions)) and time.monotonic() < deadline:
            time.sleep(0.05)
        found += [f"left over: {process}" for process in left]
        statuses = [run.status for run in self.runs]
        failures = [run.error for run in self.runs if run.error]
        return {
            "runs": len(self.runs),
            "completed": statuses.count("completed"),
            "failures": failures,
            "violations": found,
        }

    def abort(self) -> None:
        for program in self.programs:
            if program.process.poll() is None:
                program.kill()


def main() -> None:
    from tests.faults import scenarios  # noqa: F401 - they register themselves

    name, size, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    lab = Lab(size, seed)
    try:
        report = SCENARIOS[name](lab)
        report |= lab.end()
    finally:
        lab.abort()
        connections.close_all()
        for server in SERVERS.values():
            server.discard()
    print(json.dumps({"scenario": name, **report}))
