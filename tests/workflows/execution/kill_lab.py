"""Executes runs, one after the other, in processes that are killed at random moments. Prints what is left as JSON.

Usage: kill_lab.py KILLS RIVALS SEED, with RUNSIGHT_HOME pointing to an empty folder, and DATABASE_URL to an empty
database if it is not to be one in that folder.
"""

import json
import os
import random
import signal
import sys
import time

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from workflows_app import services  # noqa: E402
from workflows_app.models import Run, Workflow  # noqa: E402

CHILD = """\
version: "1.0"
blocks:
  inner:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(0.05)
          return {"got": data["inputs"]["x"]}
    assertions:
      - {type: is-json}
"""
STEP = """\
  step{n}:
    type: code
    depends: {before}
    code: |
      import time
      def main(data):
          time.sleep(0.04)
          return {{"n": {n}}}
    assertions:
      - {{type: contains, value: "{n}"}}
"""
MIXED = """\
version: "1.0"
souls:
  writer: {role: Writer, system_prompt: Summarize., provider: demo, model_name: demo-small}
blocks:
  ask:
    type: llm
    soul_ref: writer
    prompt: "Say a word about {{ inputs.topic }}"
    assertions:
      - {type: word-count, value: {min: 1}}
  draft:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(0.03)
          return {"round": data["round"]}
    assertions:
      - {type: is-json}
  rounds:
    type: loop
    depends: ask
    inner_block_refs: [draft]
    max_rounds: 4
  branches:
    type: dispatch
    depends: rounds
    exits:
      - {id: a, label: A, soul_ref: writer, task: "Say a"}
      - {id: b, label: B, soul_ref: writer, task: "Say b"}
  child:
    type: workflow
    workflow_ref: child
    depends: branches
    inputs: {x: inputs.topic}
""" + "".join(STEP.format(n=n, before="child" if n == 0 else f"step{n - 1}") for n in range(12))


def main() -> None:
    kills, rivals, chance = int(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    call_command("migrate", verbosity=0)
    services.save_version("child", CHILD)
    workflow = services.save_version("mixed", MIXED).workflow
    runs = [start(workflow)]
    made, done_before, patience = 0, -1, 0.35
    while made < kills:
        if is_over(runs[-1]):
            runs.append(start(workflow))
            done_before = -1
        children = [fork_executor() for _ in range(rivals)]
        if Run.objects.get(pk=runs[-1].pk).takeovers >= 3:
            wait_for_a_block(runs[-1], done_before)
        time.sleep(chance.uniform(0.01, patience))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        made += 1
        done = Run.objects.get(pk=runs[-1].pk).nodes_done
        patience = 0.35 if done > done_before else min(patience * 2, 4.0)
        done_before = done
    last = fork_executor()
    deadline = time.monotonic() + 60
    while not is_over(runs[-1]) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(last, signal.SIGTERM)
    os.waitpid(last, 0)
    print(
        json.dumps({"kills": made, "runs": [report(run) for run in runs], "statistics": statistics(workflow)})
    )


def start(workflow: Workflow) -> Run:
    return services.start_run(workflow, {"topic": "tea"})


def wait_for_a_block(run: Run, done_before: int) -> None:
    """Too many takeovers in a row without one end a run, and a busy machine starts processes slowly."""
    deadline = time.monotonic() + 30
    while Run.objects.get(pk=run.pk).nodes_done <= done_before and time.monotonic() < deadline:
        time.sleep(0.01)


def is_over(run: Run) -> bool:
    run.refresh_from_db()
    return run.is_terminal and run.observed_at is not None


def fork_executor() -> int:
    connection.close()  # a connection, or a pool of them, cannot be shared with a child
    if connection.vendor == "postgresql":
        connection.close_pool()
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr
        call_command("worker", concurrency=2)
        os._exit(0)
    return child


def report(run: Run) -> dict[str, object]:
    from evals_app.models import Observation

    runs = [run, *Run.objects.filter(parent_run=run)]
    return {
        "status": run.status,
        "error": run.error,
        "children": [child.status for child in runs[1:]],
        "nodes": [
            {
                "is_own": node.run_id == run.pk,
                "key": [node.node_id, node.iteration],
                "status": node.status,
                "is_evaluated": node.evaluated_at is not None,
            }
            for one in runs
            for node in one.nodes.all()
        ],
        "events": [
            [[event.seq, event.event, event.data.get("node")] for event in one.events.all()] for one in runs
        ],
        "observations": list(Observation.objects.filter(run=run).values_list("node_id", flat=True)),
    }


def statistics(workflow: Workflow) -> str:
    """Whether what was kept is what the observations give."""
    from evals_app.models import BlockStatistics
    from evals_app.services.observation import rebuild_statistics

    def rows() -> list[object]:
        found = BlockStatistics.objects.filter(workflow=workflow).order_by("node_id")
        return list(found.values_list("node_id", "count", "state", "slices"))

    kept = rows()
    rebuild_statistics(workflow)
    return "equal a rebuild" if kept and kept == rows() else "differ from a rebuild"


if __name__ == "__main__":
    main()
