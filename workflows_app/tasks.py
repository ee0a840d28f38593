"""The Celery door: fetch by id, call the executor. The lease decides; a redelivered task finds the run owned or over."""

from __future__ import annotations

from celery import shared_task
from celery.exceptions import Reject


@shared_task(name="runsight.execute_run", acks_late=True, reject_on_worker_lost=True, ignore_result=True)
def execute_run(run_id: str) -> None:
    """Execute a run if nobody does."""
    from workflows_app import executors

    service = executors.service()
    if service.is_stopping:
        raise Reject("this worker is stopping", requeue=True)
    service.execute(run_id)
