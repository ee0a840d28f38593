"""Deleting old runs; observations, statistics, regressions and pinned runs stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evals_app.models import PinnedBaseline
from workflows_app.models import TERMINAL, IdempotencyKey, Run, RunEvent, RunNode
from workflows_app.storage import totals

RUNS_A_BATCH = 200
# Other writers get a turn between batches: SQLite has one writer, and its lock is unfair.
PAUSE_SECONDS = 0.02


@dataclass
class Pruned:
    """How many rows went."""

    runs: int = 0
    nodes: int = 0
    events: int = 0
    keys: int = 0


def prune(keep: timedelta, on_batch: Callable[[Pruned], None] | None = None) -> Pruned:
    """Delete runs that ended longer ago than `keep`, in short transactions; safe to stop at any time."""
    before = timezone.now() - keep
    gone = Pruned()
    gone.keys = IdempotencyKey.objects.filter(
        created_at__lt=timezone.now() - IdempotencyKey.KEPT_FOR
    ).delete()[0]
    while roots := set(candidates(before)[:RUNS_A_BATCH]):
        delete_runs(roots, gone)
        if on_batch is not None:
            on_batch(gone)
        time.sleep(PAUSE_SECONDS)
    return gone


def candidates(before: datetime) -> QuerySet[Run, UUID]:
    """Runs that have ended, were observed and are not pinned, and whose children have, too; those go with them."""
    return (
        Run.objects.filter(
            created_at__lt=before, finished_at__lt=before, status__in=TERMINAL, parent_run=None
        )
        .exclude(observed_at=None)
        .exclude(pk__in=_kept())
        .order_by("created_at")
        .values_list("pk", flat=True)
    )


def _kept() -> set[UUID]:
    """Runs somebody compares with, children that were not acted on yet, and every run above them."""
    pinned = Run.objects.filter(pk__in=PinnedBaseline.objects.exclude(run=None).values("run"))
    waiting = Run.objects.filter(observed_at=None).exclude(parent_run=None)
    kept = level = {*pinned.values_list("pk", flat=True), *waiting.values_list("pk", flat=True)}
    while level:
        level = set(Run.objects.filter(children__in=level).values_list("pk", flat=True)) - kept
        kept = kept | level
    return kept


def _with_children(roots: set[UUID]) -> set[UUID]:
    found = level = roots
    while level:
        level = set(Run.objects.filter(parent_run__in=level).values_list("pk", flat=True))
        found = found | level
    return found


@transaction.atomic
def delete_runs(roots: set[UUID], gone: Pruned) -> None:
    # Whoever pins a run locks it first: what was pinned until now is seen and stays, what would be later is refused.
    list(
        Run.objects.select_for_update().filter(pk__in=_with_children(roots)).order_by("pk").values_list("pk")
    )
    batch = _with_children(roots - _kept())
    # Events and nodes are many and nothing but their run points to them: no need to load them first.
    events, nodes = RunEvent.objects.filter(run__in=batch), RunNode.objects.filter(run__in=batch)
    gone.events += events._raw_delete(events.db)
    RunNode.objects.filter(child_run__in=batch).update(child_run=None)
    gone.nodes += nodes._raw_delete(nodes.db)
    totals.runs_changed(Run.objects.counted().filter(pk__in=batch).values_list("created_at", flat=True))
    gone.runs += Run.objects.filter(pk__in=batch).delete()[1].get(Run._meta.label, 0)
