"""The Celery task that executes a run. The lease decides: a task that comes twice finds the run owned or over."""

from __future__ import annotations

from celery import shared_task
from celery.exceptions import Reject

from workflows_app import executors


@shared_task(name=executors.EXECUTE_RUN, acks_late=True, reject_on_worker_lost=True, ignore_result=True)
def execute_run(run_id: str) -> None:
    """Execute a run if nobody does."""
    service = executors.service()
    if service.is_stopping:
        raise Reject("this worker is stopping", requeue=True)
    service.execute(run_id)
