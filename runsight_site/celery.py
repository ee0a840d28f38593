"""Celery as transport: it wakes workers, the database says what there is to do."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings
from kombu.entity import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "runsight_site.settings")

# A run may take hours; a message that comes again sooner would only find its run owned.
UNACKNOWLEDGED_SECONDS = 6 * 3600
_is_redis = settings.CELERY_BROKER_URL.startswith("redis")

app = Celery("runsight")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL or "memory://",
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=4,
    # Starting a run must not wait long for a broker that is away: the sweep finds the row.
    broker_transport_options={
        "visibility_timeout": UNACKNOWLEDGED_SECONDS,
        "socket_connect_timeout": 4,
        "socket_timeout": 4,  # a worker's own wait for messages is one second
        "socket_keepalive": True,
        "health_check_interval": 10,
    }
    if _is_redis
    else {"write_timeout": 4},
    task_publish_retry_policy={"max_retries": 2, "interval_start": 0, "interval_step": 0.2},
    task_default_queue=settings.RUNSIGHT_QUEUE,
    # RabbitMQ closes the channel of a consumer that keeps a message for longer than this (30 minutes by default).
    task_queues=[
        Queue(
            settings.RUNSIGHT_QUEUE,
            routing_key=settings.RUNSIGHT_QUEUE,
            queue_arguments={} if _is_redis else {"x-consumer-timeout": UNACKNOWLEDGED_SECONDS * 1000},
        )
    ],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)
app.autodiscover_tasks(["workflows_app", "evals_app"])


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Django's LOGGING stands: with a listener here Celery sets up none of its own."""
