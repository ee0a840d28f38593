"""What the admin's first page shows, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection
from django.db.models import Count, Min, Q
from django.template.defaultfilters import filesizeformat

from evals_app.models import Regression, RegressionState
from evals_app.monitoring import dashboard
from runsight_site.serving import health
from workflows_app import clock
from workflows_app.admin.audit import in_words
from workflows_app.display import formats
from workflows_app.engine.sandbox.report import isolation_report
from workflows_app.models import AuditEntry, Run, RunStatus
from workflows_app.security import access

LATEST = 8
WAITS_TOO_LONG_SECONDS = 60


@dataclass(frozen=True)
class Tile:
    """One figure with a link to the page that shows more."""

    label: str
    value: str
    detail: str
    href: str
    tone: str = ""


@dataclass(frozen=True)
class HealthCheck:
    """One thing that works, or not."""

    name: str
    is_ok: bool
    sentence: str


def figures(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Tiles, health, isolation, and the latest entries of the audit log for those who may read it."""
    active = Run.objects.active().aggregate(
        running=Count("pk", filter=Q(status=RunStatus.RUNNING)),
        pending=Count("pk", filter=Q(status=RunStatus.PENDING)),
        oldest=Min("created_at", filter=Q(status=RunStatus.PENDING)),
    )
    entries: list[dict[str, Any]] = []
    if access.may(user, "workflows_app.view_auditentry"):
        rows = AuditEntry.objects.select_related("user")[:LATEST]
        entries = [{"row": row, "deed": in_words(row.action)} for row in rows]
    return {
        "tiles": [_runs_now(active), _pass_rate(), _regressions(), _storage()],
        "health": [_executor(active), _channel_layer()],
        "isolation": isolation_report(),
        "entries": entries,
    }


def _runs_now(active: dict[str, Any]) -> Tile:
    waiting = f"{active['pending']} waiting" if active["pending"] else "none waiting"
    return Tile("Runs now", str(active["running"]), waiting, "/runs/?status=running")


def _pass_rate() -> Tile:
    last_day = dashboard.figures("24h")
    rate, runs = last_day["pass_rate"], last_day["runs"]["value"]
    before = "" if rate["previous"] is None else f", {formats.percent(rate['previous'])} the day before"
    plural = "" if runs == 1 else "s"
    return Tile(
        "Pass rate, 24h", formats.percent(rate["value"]), f"{formats.count(runs)} run{plural}{before}", "/"
    )


def _regressions() -> Tile:
    counts = Regression.objects.unresolved().aggregate(
        open=Count("pk", filter=Q(state=RegressionState.OPEN)),
        seen=Count("pk", filter=Q(state=RegressionState.ACKNOWLEDGED)),
    )
    tone = "bad" if counts["open"] else ""
    href = "/admin/evals_app/regression/?state__exact=open"
    return Tile("Open regressions", str(counts["open"]), f"{counts['seen']} acknowledged", href, tone)


def _storage() -> Tile:
    kind = "PostgreSQL" if connection.vendor == "postgresql" else "SQLite"
    return Tile("Storage", filesizeformat(database_bytes()), kind, "/admin/workflows_app/run/")


def database_bytes() -> int:
    """How much the database holds, with what SQLite has not written back yet."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
    name = Path(str(connection.settings_dict["NAME"]))
    files = (name, name.with_name(name.name + "-wal"))
    return sum(path.stat().st_size for path in files if path.exists())


def _executor(active: dict[str, Any]) -> HealthCheck:
    """The process's own word, and whether a run has been left waiting: workers elsewhere are seen only by that."""
    oldest = active["oldest"]
    waited = (clock.now() - oldest).total_seconds() if oldest else 0.0
    if waited > WAITS_TOO_LONG_SECONDS:
        sentence = f"A run has waited {formats.duration(waited * 1000)}, and nobody took it."
        return HealthCheck("executor", False, sentence)
    state = health.executor_state()
    if state.startswith("failed"):
        return HealthCheck("executor", False, "Not running in this process: started runs will wait.")
    where = "in this process" if state == "ok" else f"by {settings.RUNSIGHT_EXECUTOR} workers"
    return HealthCheck("executor", True, f"Runs are executed {where}; none is left waiting.")


def _channel_layer() -> HealthCheck:
    name = "Redis" if settings.REDIS_URL else "in memory"
    state = async_to_sync(health.channel_layer_state)()
    if state == "ok":
        return HealthCheck("channel layer", True, f"Answers ({name}): open pages are updated at once.")
    return HealthCheck("channel layer", False, f"Does not answer ({name}; {state}): open pages fall behind.")
