"""What a workflow is and how it runs."""

from django.apps import AppConfig

from workflows_app.signals import run_cancelled, run_ready, swept


class WorkflowsConfig(AppConfig):
    """Connects the executor of this process to what happens to runs, and the hourly totals to its sweep."""

    name = "workflows_app"
    verbose_name = "Workflows"

    def ready(self) -> None:
        # Here, because both import models, which are loaded by now.
        from workflows_app import executors
        from workflows_app.storage import totals

        run_ready.connect(executors.wake, dispatch_uid="executors.run_ready")
        run_cancelled.connect(executors.on_run_cancelled, dispatch_uid="executors.run_cancelled")
        swept.connect(totals.settle, dispatch_uid="totals.swept")
