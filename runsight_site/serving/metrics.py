"""`/metrics` for Prometheus: what this process has done, and what the tables say about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import Count, Min, QuerySet
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rest_framework.request import Request

from evals_app.assertions.matching import patterns
from workflows_app.api.base.views import ApiView
from workflows_app.models import Run, RunStatus
from workflows_app.security import access

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


def _by_status(runs: QuerySet[Run]) -> dict[str, int]:
    return dict(runs.order_by().values_list("status").annotate(Count("pk")))


class Tables(Collector):
    """What no single process knows. Not in the registry: a worker's own port shows the worker, and asks no database."""

    def collect(self) -> Iterator[Metric]:
        """Each query reads an index of active or recent runs, not all of them."""
        now = timezone.now()
        active = _by_status(Run.objects.active())
        recent = _by_status(Run.objects.filter(created_at__gte=now - RECENT))
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


@extend_schema(exclude=True)
class Metrics(ApiView):
    """For a token or a session that may see runs; never public."""

    permissions = {"GET": access.SEE}

    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        tables = CollectorRegistry(auto_describe=False)
        tables.register(Tables())
        return HttpResponse(
            generate_latest(REGISTRY) + generate_latest(tables), content_type=CONTENT_TYPE_LATEST
        )
