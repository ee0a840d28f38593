"""Who executes a run. The lease in the row decides; a message from a broker only wakes a worker."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from workflows_app import metrics
from workflows_app.models import Run, RunStatus

MOST_TAKEOVERS = 5
# Times the length of a lease: one that ends later than this began before the clock was set back.
FARTHEST_END = 10


@dataclass(frozen=True)
class Lease:
    """The right to write a run, until the fence moves on."""

    run: Run
    fence: int


def lease_seconds() -> float:
    """How long a run stays its owner's without being renewed."""
    return float(settings.RUNSIGHT_LEASE_SECONDS)


def owner_id() -> str:
    """This process: host, boot, pid and start time, so that a dead owner on this host is known to be dead."""
    return f"{host()}:{os.getpid()}:{_start_time(os.getpid())}"


def claim(run_id: UUID | str, dead: Collection[str] = ()) -> Lease | None:
    """Take a run that is pending, or whose lease ran out, or whose owner is known to be dead; None if it is none.

    A row that somebody has locked is left alone: a process that was frozen in a transaction must not stop this one.
    """
    free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(_PENDING | _orphaned(dead))
    with transaction.atomic():
        status = free.filter(pk=run_id).values_list("status", flat=True).first()
        if status is None:
            return None
        is_takeover = status != RunStatus.PENDING
        Run.objects.filter(pk=run_id).update(
            status=RunStatus.RUNNING,
            owner=owner_id(),
            fence=F("fence") + 1,
            takeovers=F("takeovers") + int(is_takeover),
            lease_expires_at=Now() + timedelta(seconds=lease_seconds()),
        )
    if is_takeover:
        metrics.TAKEOVERS.inc()
    run = Run.objects.select_related("workflow", "version").get(pk=run_id)
    run.version.workflow = run.workflow
    return Lease(run, run.fence)


def claimable(dead: Collection[str], limit: int, overdue_seconds: float = 0.0) -> list[UUID]:
    """Runs that nobody executes, oldest first. A child run is resumed by its parent's owner.

    A pending run is listed once it has waited `overdue_seconds`.
    """
    runs = Run.objects.filter(_PENDING | _orphaned(dead), parent_run=None).order_by("created_at")
    if overdue_seconds:
        waited = Q(created_at__lt=Now() - timedelta(seconds=overdue_seconds))
        runs = runs.filter(~_PENDING | waited)
    return list(runs.values_list("pk", flat=True)[:limit])


_PENDING = Q(status=RunStatus.PENDING)


def _orphaned(dead: Collection[str]) -> Q:
    farthest = Now() + timedelta(seconds=FARTHEST_END * lease_seconds())
    is_unowned = Q(lease_expires_at__lt=Now()) | Q(lease_expires_at__gt=farthest)
    if dead:
        is_unowned |= Q(owner__in=dead)
    return Q(status=RunStatus.RUNNING) & is_unowned


def dead_owners() -> set[str]:
    """Owners on this host whose process is gone: their runs need not wait for the lease to run out."""
    owners = Run.objects.filter(status=RunStatus.RUNNING, owner__startswith=f"{host()}:")
    return {owner for owner in owners.values_list("owner", flat=True).distinct() if not _is_alive(owner)}


def renew(run_ids: Iterable[UUID]) -> None:
    """Extend our leases."""
    Run.objects.filter(pk__in=list(run_ids), owner=owner_id(), status=RunStatus.RUNNING).update(
        lease_expires_at=Now() + timedelta(seconds=lease_seconds())
    )


def release(lease: Lease) -> None:
    """Release a run unfinished, so that another process takes it at once."""
    Run.objects.filter(pk=lease.run.pk, fence=lease.fence, status=RunStatus.RUNNING).update(
        lease_expires_at=Now() - timedelta(seconds=1)
    )


def reset_takeovers(lease: Lease) -> None:
    """A block finished in a child: what came before it does not count against the parent."""
    Run.objects.filter(pk=lease.run.pk, fence=lease.fence).update(takeovers=0)


def _is_alive(owner: str) -> bool:
    pid, started = owner.rsplit(":", 2)[1:]
    return _start_time(int(pid)) == started


@cache
def host() -> str:
    def read(path: str) -> str:
        try:
            return Path(path).read_text().strip()[:8]
        except OSError:
            return ""

    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{platform.node()[:60]}/{read('/proc/sys/kernel/random/boot_id')}/{namespace.strip('pid:[]')}"


def _start_time(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else "unknown"
    return "" if fields[0] == "Z" else fields[19]
