"""Who executes runs: the pool, the leases it keeps alive, and the orphans it picks up."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.execution.driver import RunDriver
from workflows_app.execution.resources import Resources
from workflows_app.models import ACTIVE, Run, RunNode, RunStatus
from workflows_app.services import leases
from workflows_app.signals import block_completed, run_finished, swept

log = structlog.get_logger("runsight.executor")

POLL_SECONDS = 0.5
SWEEP_SECONDS = 2.0
# With a broker: a message may be lost with it, or with a worker that had fetched it. A run whose owner died is
# woken at once and then this often; one that waits may just be far back in the queue.
WAKE_ORPHAN_SECONDS = 10.0
WAKE_WAITING_SECONDS = 60.0
OVERDUE_SECONDS = 10.0
# The task in workflows_app/tasks.py, called by name so that this module need not import Celery.
EXECUTE_RUN = "runsight.execute_run"


class ExecutionService:
    """Executes runs inside this process, several at once."""

    def __init__(self, concurrency: int | None = None) -> None:
        self.concurrency = concurrency or settings.RUNSIGHT_CONCURRENCY
        self.resources = Resources()
        self._drivers: dict[UUID, RunDriver] = {}
        self._woken: deque[tuple[UUID, Collection[str]]] = deque()
        self._swept = -SWEEP_SECONDS
        self._slots = threading.Semaphore(self.concurrency)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="run")
        self._threads: dict[str, threading.Thread] = {}
        self._renewed = time.monotonic()
        self._woken_at: dict[tuple[UUID, int], float] = {}  # until when not to wake it again

    # Starting and stopping

    def start(self) -> None:
        """Begin to take runs; what an earlier process left behind comes first."""
        self._begin("dispatch", self._dispatch, SWEEP_SECONDS)
        self._begin("keep-leases", self._keep_leases, POLL_SECONDS)

    def start_beside_broker(self) -> None:
        """Keep leases and wake runs that nobody executes; runs are taken when a message comes."""
        self._begin("sweep", self._wake_orphans, SWEEP_SECONDS)
        self._begin("keep-leases", self._keep_leases, POLL_SECONDS)

    def interrupt(self) -> None:
        """Take no more runs and stop those we have; safe to call from a signal handler."""
        self._stopping.set()
        self._wake.set()
        for driver in list(self._drivers.values()):
            driver.cancelled.set()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop taking runs and release those we have, so that another process continues them."""
        self._stopping.set()
        self._wake.set()
        for thread in self._threads.values():  # first, so that no run is taken that nobody would execute
            thread.join(timeout)
        self.interrupt()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.resources.close()

    @property
    def is_alive(self) -> bool:
        """Whether runs are taken here."""
        names = ("dispatch", "keep-leases")
        return all(name in self._threads and self._threads[name].is_alive() for name in names)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def _begin(self, name: str, step: Callable[[], None], pause: float) -> None:
        with _lock:
            if name not in self._threads:
                thread = threading.Thread(target=self._forever, args=(step, pause), name=name, daemon=True)
                self._threads[name] = thread
                thread.start()

    @property
    def running(self) -> int:
        return len(self._drivers)

    # Taking runs

    def wake(self, run_id: UUID) -> None:
        """A run may be waiting; look now and not at the next sweep."""
        self._woken.append((run_id, frozenset()))
        self._wake.set()

    def execute(self, run_id: UUID | str) -> bool:
        """Execute a run in this thread, if it is free; called by commands and Celery tasks."""
        lease = self._claim(run_id, leases.dead_owners())
        if lease is None:
            return False
        if not connection.in_atomic_block:  # within a transaction nobody else sees the run
            self._begin("keep-leases", self._keep_leases, POLL_SECONDS)
        self.drive(lease)
        return True

    def cancel(self, run_id: UUID) -> None:
        """Stop a run now, if it executes here."""
        driver = self._drivers.get(run_id)
        if driver is not None:
            driver.cancelled.set()

    def _dispatch(self) -> None:
        """Start what was woken, as far as there are free slots; now and then look for what nobody woke."""
        self._wake.clear()
        if time.monotonic() - self._swept >= SWEEP_SECONDS:
            self._sweep()
            self._swept = time.monotonic()
        while self._woken and not self._stopping.is_set() and self._slots.acquire(blocking=False):
            run_id, dead = self._woken.popleft()
            lease = self._claim(run_id, dead)
            if lease is None:
                self._slots.release()
            else:
                self._pool.submit(self._drive_in_slot, lease)

    def _claim(self, run_id: UUID | str, dead: Collection[str]) -> leases.Lease | None:
        """Take a run, but not from ourselves: a lease that ran out while this process stood still is renewed instead."""
        return None if UUID(str(run_id)) in self._drivers else leases.claim(run_id, dead)

    def _sweep(self) -> None:
        """Find runs without an owner, and what a process that died may not have sent."""
        announce_unfinished()
        dead = leases.dead_owners()
        known = {run_id for run_id, _ in self._woken}
        for run_id in leases.claimable(dead, limit=self.concurrency):
            if run_id not in known:
                self._woken.append((run_id, dead))

    def _wake_orphans(self) -> None:
        """Send messages for runs whose own was lost, with a broker or an owner that died; not too often for one."""
        announce_unfinished()
        now = time.monotonic()
        self._woken_at = {key: due for key, due in self._woken_at.items() if due > now}
        waiting = leases.claimable(leases.dead_owners(), limit=100, overdue_seconds=OVERDUE_SECONDS)
        # By fence: a run that was woken, taken and orphaned since is news.
        for key in Run.objects.filter(pk__in=waiting).order_by("created_at").values_list("pk", "fence"):
            if key not in self._woken_at and key[0] not in self._drivers:
                wake(key[0])
                self._woken_at[key] = now + (WAKE_ORPHAN_SECONDS if key[1] else WAKE_WAITING_SECONDS)

    def _drive_in_slot(self, lease: leases.Lease) -> None:
        close_old_connections()
        try:
            self.drive(lease)
        finally:
            connection.close()  # an idle thread keeps no connection of the pool
            self._slots.release()
            self._wake.set()

    def drive(self, lease: leases.Lease) -> None:
        """Execute a run that is ours, in this thread."""
        driver = RunDriver(lease, self.resources, self._watched)
        with self._watched(driver):
            if self.is_stopping:
                driver.cancelled.set()
            driver.drive()
        if self.is_stopping:
            leases.release(lease)  # moves nothing if the run is over or another's

    @contextmanager
    def _watched(self, driver: RunDriver) -> Iterator[None]:
        self._drivers[driver.run.pk] = driver
        try:
            yield
        finally:
            if self._drivers.get(driver.run.pk) is driver:
                del self._drivers[driver.run.pk]

    # Keeping leases

    def _keep_leases(self) -> None:
        """Renew what we hold and notice what was cancelled or taken from us."""
        held = dict(self._drivers)
        if not held:
            connection.close()
            return
        rows = Run.objects.filter(pk__in=held).values_list("pk", "fence", "status")
        found = {pk: (fence, status) for pk, fence, status in rows}
        for run_id, driver in held.items():
            if found.get(run_id) != (driver.lease.fence, RunStatus.RUNNING):
                driver.cancelled.set()
        if time.monotonic() - self._renewed >= leases.lease_seconds() / 3:
            leases.renew(held)
            self._renewed = time.monotonic()

    def _forever(self, step: Callable[[], None], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                step()
            except Exception:
                log.exception("executor step failed; it is tried again")
                connection.close()
            waiter = self._wake if step == self._dispatch else self._stopping
            waiter.wait(pause)
        connection.close()

    # Names that other programs rely on

    @staticmethod
    def _build_assertion_configs(definition: WorkflowDefinition) -> dict[str, list[dict[str, Any]]]:
        """The assertions by block, for the blocks that have some."""
        return definition.assertions_by_block


def announce_unfinished(limit: int = 200) -> None:
    """Send again what a process that died may not have sent: nodes not evaluated, ends not acted on."""
    nodes = RunNode.objects.unevaluated().exclude(run__status__in=ACTIVE)
    for node in nodes.select_related("run__workflow", "run__version__workflow")[:limit]:
        block_completed.send_robust(sender=RunNode, node=node)
    for run in Run.objects.unannounced().select_related("workflow", "version__workflow")[:limit]:
        run_finished.send_robust(sender=Run, run=run)
    swept.send_robust(sender=ExecutionService)


current: ExecutionService | None = None
_lock = threading.Lock()


def service() -> ExecutionService:
    """This process's executor; made when first needed, started by the server and `worker` only."""
    global current
    with _lock:
        if current is None:
            current = ExecutionService()
        return current


def start_once() -> None:
    """Start executing in this process; a second call changes nothing."""
    if settings.RUNSIGHT_EXECUTOR == "local":
        service().start()


def stop() -> None:
    """Release what executes in this process, which would not end before the last block does."""
    if current is not None:
        current.stop()


def wake(run_id: UUID, **_: Any) -> None:
    """Send a run that was committed to whoever executes it."""
    if settings.RUNSIGHT_EXECUTOR == "celery":
        from celery import current_app  # optional: only installations with a broker have it

        current_app.send_task(EXECUTE_RUN, [str(run_id)], ignore_result=True)
    elif current is not None:
        current.wake(run_id)


def on_run_cancelled(run_id: UUID, **_: Any) -> None:
    """Stop a cancelled run now, if it executes here."""
    if current is not None:
        current.cancel(run_id)
