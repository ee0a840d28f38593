"""The Celery task of suites."""

from __future__ import annotations

from celery import shared_task

from evals_app.suites.running import EXECUTE_SUITE_RUN, execute_suite_by_id


@shared_task(name=EXECUTE_SUITE_RUN, acks_late=True, ignore_result=True)
def execute_suite_run(suite_run_id: str) -> None:
    """Evaluate a suite that nobody has taken yet."""
    execute_suite_by_id(suite_run_id)
