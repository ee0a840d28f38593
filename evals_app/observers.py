"""Listens to what workflows_app announces. Nothing here may stop a run."""

from __future__ import annotations

from typing import Any

from evals_app.services.evaluation import evaluate_node
from evals_app.services.observation import observe_run
from evals_app.suites import running as suites
from workflows_app.models import Run, RunNode
from workflows_app.signals import block_completed, run_finished, swept


class EvalObserver:
    """Evaluates each finished block, observes each finished run, and closes abandoned suites."""

    def on_block_complete(self, sender: Any, node: RunNode, **_: Any) -> None:
        """Evaluate a node; one that could not be written is found from its row and tried again."""
        evaluate_node(node)

    def on_run_finished(self, sender: Any, run: Run, **_: Any) -> None:
        """Add the run's observations; a failure is found from the rows and tried again."""
        observe_run(run)

    def on_swept(self, sender: Any, **_: Any) -> None:
        """End the suite runs whose process has gone."""
        suites.close_abandoned()

    def connect(self) -> None:
        """Listen, once however often this is called."""
        block_completed.connect(self.on_block_complete, dispatch_uid="evals.block_completed", weak=False)
        run_finished.connect(self.on_run_finished, dispatch_uid="evals.run_finished", weak=False)
        swept.connect(self.on_swept, dispatch_uid="evals.swept", weak=False)
