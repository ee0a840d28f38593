"""Small makers of real rows, through the real services."""

from __future__ import annotations

import time
from typing import Any

from evals_app.models import EvalSuiteRun
from evals_app.suites import running as suites
from workflows_app import executors, services
from workflows_app.models import Run, Workflow

SOUL = "souls:\n  analyst: {role: Analyst, system_prompt: 'You analyse.', provider: demo, model_name: demo-small}\n"
ONE_CODE_BLOCK = """\
version: "1.0"
blocks:
  shout:
    type: code
    code: |
      def main(data):
          return data["inputs"]["text"].upper()
    assertions:
      - {type: contains, value: HELLO}
interface:
  inputs:
    - {name: text, type: string, default: hello}
"""


def make_workflow(yaml: str = ONE_CODE_BLOCK, slug: str = "shout", **options: Any) -> Workflow:
    """A saved workflow."""
    return services.save_version(slug, yaml, **options).workflow


def run_suite(workflow: Workflow, user: Any = None) -> EvalSuiteRun:
    """Evaluate every case now, and store the results."""
    suite_run = suites.begin(workflow, user)
    suites.execute_suite(suite_run)
    return suite_run


def finish(run: Run, timeout: float = 20.0) -> Run:
    """Wait until the running executor has brought a run to its end."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        run.refresh_from_db()
        if run.is_terminal and run.observed_at:
            return run
        time.sleep(0.01)
    raise AssertionError(
        f"run is {run.status} after {timeout} s: {[(n.node_id, n.status, n.error) for n in run.nodes.all()]}"
    )


def run_now(workflow: Workflow, inputs: dict[str, Any] | None = None, **options: Any) -> Run:
    """Start a run and execute it in this thread."""
    run = services.start_run(workflow, inputs, **options)
    executors.service().execute(run.pk)
    run.refresh_from_db()
    return run
