"""What a workflow is and how it runs."""

from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """Registers the app."""

    name = "workflows_app"
    verbose_name = "Workflows"
