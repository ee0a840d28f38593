"""What "good" means: assertions, baselines, regressions."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class EvalsConfig(AppConfig):
    """Plugs evaluation into what workflows_app announces and validates."""

    name = "evals_app"
    verbose_name = "Evaluation"

    def ready(self) -> None:
        from evals_app.assertions import validate_assertions
        from evals_app.observers import EvalObserver
        from workflows_app.documents.compile import use_assertion_checker
        from workflows_app.security import access

        use_assertion_checker(validate_assertions)
        EvalObserver().connect()

        # The last app's signal: by then every permission a role may hold has its row.
        post_migrate.connect(access.grant_roles, sender=self, dispatch_uid="access.grant_roles")
