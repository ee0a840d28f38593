"""Listens to what workflows_app announces. Nothing here may stop a run."""

from __future__ import annotations

from typing import Any

import structlog
from django.db import DatabaseError

from evals_app import services, suites
from workflows_app import totals
from workflows_app.models import Run, RunNode
from workflows_app.signals import block_completed, run_finished, swept

log = structlog.get_logger("runsight.evals")


class EvalObserver:
    """Evaluates each finished block, observes each finished run, and keeps suites and totals true."""

    def on_block_complete(self, sender: Any, node: RunNode, **_: Any) -> None:
        """Evaluate a node; a break of the evaluator is recorded on it."""
        try:
            services.evaluate_node(node)
        except DatabaseError:  # says nothing about the node: it stays unevaluated, and is found from its row
            log.exception("evaluation could not be written", node=node.pk)
            raise
        except Exception as error:
            log.exception("evaluation failed", node=node.pk)
            services.record_broken_evaluation(node, error)

    def on_run_finished(self, sender: Any, run: Run, **_: Any) -> None:
        """Add the run's observations; a failure is found from the rows and tried again."""
        services.observe_run(run)

    def on_swept(self, sender: Any, **_: Any) -> None:
        """End the suite runs whose process has gone, and add up what is long over."""
        suites.close_abandoned()
        totals.settle()

    def connect(self) -> None:
        """Listen, once however often this is called."""
        block_completed.connect(self.on_block_complete, dispatch_uid="evals.block_completed", weak=False)
        run_finished.connect(self.on_run_finished, dispatch_uid="evals.run_finished", weak=False)
        swept.connect(self.on_swept, dispatch_uid="evals.swept", weak=False)
