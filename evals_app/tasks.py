"""The Celery door of suites: fetch by id, call the service."""

from __future__ import annotations

from celery import shared_task


@shared_task(name="runsight.execute_suite_run", acks_late=True, ignore_result=True)
def execute_suite_run(suite_run_id: str) -> None:
    """Evaluate a suite that nobody has taken yet."""
    from evals_app import suites

    suites.execute_suite_by_id(suite_run_id)
