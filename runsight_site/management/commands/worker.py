"""`runsight worker`: execute runs in a process of its own."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand
from prometheus_client import start_http_server

from workflows_app import executors

log = structlog.get_logger("runsight.worker")

START_AGAIN_SECONDS = 2.0
GOODBYE_SECONDS = 5.0


class Command(BaseCommand):
    """Serves as a Celery worker, or beside the server with the local executor."""

    help = "Execute runs: as a Celery worker with RUNSIGHT_EXECUTOR=celery, otherwise straight from the database."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--concurrency", type=int, default=settings.RUNSIGHT_CONCURRENCY, help="runs at the same time"
        )
        parser.add_argument(
            "--metrics-port",
            type=int,
            metavar="PORT",
            help="serve this worker's metrics there, to whoever reaches HOST (loopback unless you set it)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["metrics_port"] is not None:
            start_http_server(options["metrics_port"], addr=settings.HOST)
        if settings.RUNSIGHT_EXECUTOR == "celery":
            self._serve_celery(options["concurrency"])
        else:
            self._serve_rows(options["concurrency"])

    def _serve_celery(self, concurrency: int) -> None:
        from celery.signals import worker_ready, worker_shutting_down

        from runsight_site.celery import app

        executors.current = service = executors.ExecutionService(concurrency)

        def ready(**_: Any) -> None:
            log.info("worker is ready", concurrency=concurrency, queue=settings.RUNSIGHT_QUEUE)

        was_asked = threading.Event()

        def shutting_down(**_: Any) -> None:
            was_asked.set()
            service.interrupt()  # a warm shutdown would wait for the last run's last block
            threading.Thread(target=_see_off, args=[service], name="see-off", daemon=True).start()

        worker_ready.connect(ready)
        worker_shutting_down.connect(shutting_down)
        service.start_beside_broker()
        try:
            # Threads: a run waits for models most of its time, and its blocks have processes of their own.
            # Workers on one host need names of their own.
            app.worker_main(
                ["--quiet", "worker", "--pool=threads", f"--concurrency={concurrency}", "--loglevel=WARNING",
                 "--without-gossip", "--without-mingle", "--without-heartbeat", f"--hostname=runsight-{os.getpid()}@%h"]
            )  # fmt: skip
        except SystemExit:
            if was_asked.is_set():
                raise
        finally:
            service.stop()
            log.info("worker has stopped")
        if not was_asked.is_set():
            _start_again()

    def _serve_rows(self, concurrency: int) -> None:
        stopping = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopping.set())
        executors.current = service = executors.ExecutionService(concurrency)
        service.start()
        log.info("worker is ready", concurrency=concurrency)
        stopping.wait()
        service.stop()
        log.info("worker has stopped")


def _see_off(service: executors.ExecutionService) -> None:
    """Leave in time: after a lost connection the loop of the broker's client may sleep through a signal."""
    time.sleep(GOODBYE_SECONDS)
    log.warning("the broker's client does not end; the worker leaves without it")
    service.stop()
    os._exit(0)  # what was not acknowledged comes again, and finds its run owned or over


def _start_again() -> None:
    """Become a fresh worker: the broker's client ends for good when Redis dies with messages unacknowledged."""
    log.warning("the broker's client gave up; the worker starts again", seconds=START_AGAIN_SECONDS)
    time.sleep(START_AGAIN_SECONDS)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line
