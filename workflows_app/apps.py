"""What a workflow is and how it runs."""

from django.apps import AppConfig
from django.db.models.signals import post_save

from workflows_app.signals import run_cancelled, run_ready


class WorkflowsConfig(AppConfig):
    """Connects the executor of this process and the hourly totals to what happens to runs."""

    name = "workflows_app"
    verbose_name = "Workflows"

    def ready(self) -> None:
        # Here, because both import models, which are loaded by now.
        from workflows_app import executors
        from workflows_app.storage import totals

        run_ready.connect(executors.wake, dispatch_uid="executors.run_ready")
        run_cancelled.connect(executors.on_run_cancelled, dispatch_uid="executors.run_cancelled")
        post_save.connect(totals.run_changed, sender="workflows_app.Run", dispatch_uid="totals.run_saved")
