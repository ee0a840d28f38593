"""`/metrics` for Prometheus: what this process has done, and what the tables say about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import Count, Min
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rest_framework.request import Request

from evals_app.assertions import patterns
from workflows_app import access
from workflows_app.models import Run, RunStatus
from workflows_app.rest.views import ApiView

RECENT = timedelta(minutes=5)


class Stopped(Collector):
    """Patterns that the engine stopped; it counts for itself, for it imports nothing of ours."""

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "runsight_slow_patterns_stopped",
            "Patterns stopped at their time limit.",
            value=patterns.stopped_count(),
        )


REGISTRY.register(Stopped())


def table_metrics() -> Iterator[Metric]:
    """What no single process knows. Each query reads an index of active or recent runs, not all of them."""
    now = timezone.now()
    active = dict(Run.objects.active().order_by().values_list("status").annotate(Count("pk")))
    recent = dict(
        Run.objects.filter(created_at__gte=now - RECENT)
        .order_by()
        .values_list("status")
        .annotate(Count("pk"))
    )
    runs = GaugeMetricFamily("runsight_runs", "Runs that wait or are executed now.", labels=["status"])
    for status in (RunStatus.PENDING, RunStatus.RUNNING):
        runs.add_metric([status], active.get(status, 0))
    yield runs
    created = GaugeMetricFamily(
        "runsight_runs_recent",
        "Runs created in the last five minutes, by their present state.",
        labels=["status"],
    )
    for name in RunStatus.values:
        created.add_metric([name], recent.get(name, 0))
    yield created
    oldest = Run.objects.filter(status=RunStatus.PENDING).aggregate(oldest=Min("created_at"))["oldest"]
    yield GaugeMetricFamily(
        "runsight_oldest_pending_seconds",
        "How long the run at the head of the queue has waited.",
        value=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
    )


class Tables(Collector):
    """Not in the registry: a worker's own port shows the worker, and asks no database."""

    def collect(self) -> Iterator[Metric]:
        return table_metrics()


@extend_schema(exclude=True)
class Metrics(ApiView):
    """For a token or a session that may see runs; never public."""

    permissions = {"GET": access.SEE}

    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """Everything in Prometheus' text format."""
    tables = CollectorRegistry(auto_describe=False)
    tables.register(Tables())
    return bytes(generate_latest(REGISTRY) + generate_latest(tables))
