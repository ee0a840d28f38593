"""Executes one run that we hold the lease of, from its last checkpoint to its end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import structlog
from django.db import OperationalError, connection

from workflows_app import clock, services
from workflows_app.engine.blocks.base import ChildResult, Tools
from workflows_app.engine.execute import next_attempt, run_block
from workflows_app.engine.limits import Spend
from workflows_app.engine.records import Key, NodeRecord, Step
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens
from workflows_app.engine.schedule import MOST_BLOCKS_AT_ONCE, Plan
from workflows_app.events import LeaseLost
from workflows_app.execution.resources import Resources, in_thread
from workflows_app.models import NodeStatus, RunNode, RunStatus
from workflows_app.security import credentials
from workflows_app.services.leases import MOST_TAKEOVERS, Lease, release, reset_takeovers
from workflows_app.signals import block_completed

T = TypeVar("T")
log = structlog.get_logger("runsight.driver")

# How soon a cancel, or a retry that is due, is noticed while blocks are running.
NOTICE_SECONDS = 0.2
# How soon a checkpoint that the database could not take is tried again.
RETRY_SECONDS = 1.0


@dataclass
class RunningBlock:
    """A block that is being executed."""

    step: Step
    node: RunNode
    started: float


class RunDriver:
    """The loop between the plan, the blocks and the tables."""

    def __init__(
        self,
        lease: Lease,
        resources: Resources,
        watch: Callable[[RunDriver], Any],
        parent: RunDriver | None = None,
    ) -> None:
        self.lease = lease
        self.parent = parent
        self.resources = resources
        self.watch = watch  # keeps the lease of a child run, too
        self.run = lease.run
        self.definition = lease.run.version.definition
        self.souls = services.resolved_souls(lease.run)
        self.cancelled = threading.Event()
        self.running: dict[asyncio.Task[BlockResult], RunningBlock] = {}
        self.not_before: dict[Key, float] = {}
        self.failures: dict[Key, int] = {}

    def drive(self) -> None:
        """Execute the run to its end. After a lost lease nothing is written; after an error of ours the run is released."""
        context = structlog.contextvars.bound_contextvars(run=str(self.run.pk))
        with context, self.resources.loop() as self.loop:
            try:
                self._drive()
            except LeaseLost:
                log.info("lease lost")
            except Exception:
                log.exception("driver failed; the run is released")
                release(self.lease)
            finally:
                self._stop_running()

    def _drive(self) -> None:
        if self.run.takeovers > MOST_TAKEOVERS:
            message = (
                f"Given up after {self.run.takeovers} takeovers without a block finishing: "
                "each process that executed this run died or broke."
            )
            services.fail_run(self.lease, "abandoned", message)
            return
        is_new = self.run.started_at is None  # then it has no nodes to read
        services.begin_run(self.lease)
        now = clock.shared_now()
        self.spend = Spend(
            self.definition,
            credentials.price_overrides(),
            elapsed_seconds=max(0.0, (now - (self.run.started_at or now)).total_seconds()),
        )
        plan = self._resume([] if is_new else list(self.run.nodes.order_by("id")))
        while True:
            if skipped := plan.skipped():
                nodes = self._patiently(partial(services.skip_nodes, self.lease, skipped, self.definition))
                for node in nodes:
                    plan.record(_record(node))
            if plan.failure or (plan.is_finished and not self.running):
                break
            self._start_ready(plan)
            self._await_some()
            for task in [one for one in self.running if one.done()]:
                self._record_result(plan, self.running.pop(task), task)
        if plan.failure:
            self._stop_running()
            services.fail_run(self.lease, plan.failure.kind, plan.failure.message)
        else:
            services.finish_run(self.lease, RunStatus.COMPLETED, outputs=plan.context.outputs())

    # Resuming

    def _resume(self, nodes: list[RunNode]) -> Plan:
        """The plan according to the rows, after evaluating what an earlier owner left unevaluated."""
        for node in nodes:
            node.run = self.run
            if node.status == NodeStatus.COMPLETED and node.evaluated_at is None:
                block_completed.send_robust(sender=RunNode, node=node)
                _require_evaluation(node)
            if node.status == NodeStatus.COMPLETED:
                self.spend.add(node.node_id.partition(".")[0], node.cost_usd, node.total_tokens)
            elif node.status == NodeStatus.RUNNING:
                message = "The process that executed this block stopped; it is started again."
                lost = BlockFailure("interrupted", message, is_retryable=True)
                services.fail_node(self.lease, node, lost, will_retry=True)
        return Plan(
            self.definition,
            [self._stored_record(node) for node in nodes],
            inputs=self.run.inputs,
            run={"id": str(self.run.pk), "number": self.run.number, "version": self.run.version.number},
        )

    def _stored_record(self, node: RunNode) -> NodeRecord:
        """A node of an earlier owner: whether its failure was final follows from the retry rules again."""
        if node.status != NodeStatus.FAILED or not node.error:
            return _record(node)
        if node.error["type"] == "interrupted":
            return _record(node, will_retry=True)
        failure = BlockFailure(
            node.error["type"], node.error["message"], is_retryable=node.details.get("is_retryable", True)
        )
        delay = self._retry_delay((node.node_id, node.iteration), failure)
        return _record(node, will_retry=delay is not None)

    def _retry_delay(self, key: Key, failure: BlockFailure) -> float | None:
        """Count a failure of a node; how long to wait before the next attempt, or None if it was the last."""
        self.failures[key] = self.failures.get(key, 0) + 1
        block = self.definition.blocks[key[0].partition(".")[0]]
        return next_attempt(block, failure, self.failures[key])

    # Executing

    def _start_ready(self, plan: Plan) -> None:
        running = {block.step.key for block in self.running.values()}
        for step in plan.ready():
            if len(self.running) >= MOST_BLOCKS_AT_ONCE:
                return
            if step.key not in running and self.not_before.get(step.key, 0.0) <= time.monotonic():
                self._start(plan, step)

    def _start(self, plan: Plan, step: Step) -> None:
        block = self.definition.blocks[step.block_id]
        node = self._patiently(partial(services.start_node, self.lease, step, block.type, step.attempt))
        accesses = credentials.provider_accesses()  # here: the blocks' loop may not read tables
        tools = Tools(
            souls=self.souls,
            provider=lambda name: self.resources.provider(name, accesses.get(name)),
            sandbox=self.resources.sandbox,
            threads=self.resources.threads,
            is_cancelled=self.cancelled.is_set,
            spend=self.spend,
            price_overrides=credentials.price_overrides(),
            run_child=lambda slug, inputs, depth: self._run_child(node, slug, inputs, depth),
        )
        call = run_block(step, self.definition, plan.context, tools)
        self.running[self.loop.create_task(call)] = RunningBlock(step, node, time.monotonic())

    def _await_some(self) -> None:
        if self.cancelled.is_set():
            raise LeaseLost(f"Run {self.run.pk} was cancelled or taken over.")
        if self.running:
            # The loop turns only here: tables are read and written in between, in this same thread.
            some = asyncio.wait(self.running, timeout=NOTICE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            self.loop.run_until_complete(some)
        else:
            self.cancelled.wait(NOTICE_SECONDS)

    def _record_result(self, plan: Plan, block: RunningBlock, task: asyncio.Task[BlockResult]) -> None:
        """Checkpoint a block that finished or failed, and record it in the plan."""
        node = block.node
        elapsed_ms = (time.monotonic() - block.started) * 1000
        try:
            result = task.result()
        except BlockFailure as failure:
            if self.cancelled.is_set():  # it failed because we stopped it; the fence may still be ours
                raise LeaseLost(f"Run {self.run.pk} was cancelled or given back.") from None
            self._fail(plan, node, failure)
        except (asyncio.CancelledError, LeaseLost):
            raise LeaseLost(f"Run {self.run.pk} was cancelled or taken over.") from None
        except Exception as error:
            log.exception("block failed unexpectedly", node_id=node.node_id)
            self._fail(plan, node, BlockFailure("internal", f"{type(error).__name__}: {error}"))
        else:
            if result.latency_ms is None:
                result = replace(result, latency_ms=elapsed_ms)
            if (simulated := clock.simulated_clock()) is not None:
                simulated.advance(result.latency_ms or 0.0)
            self._patiently(partial(services.finish_node, self.lease, node, result))
            if self.parent is not None:
                self.parent.note_progress()
            _require_evaluation(node)
            plan.record(_record(node))

    def _fail(self, plan: Plan, node: RunNode, failure: BlockFailure) -> None:
        key = (node.node_id, node.iteration)
        delay = self._retry_delay(key, failure)
        write = partial(services.fail_node, self.lease, node, failure, will_retry=delay is not None)
        self._patiently(write)
        if delay is not None:
            self.not_before[key] = time.monotonic() + delay
        plan.record(_record(node, will_retry=delay is not None))

    def _patiently(self, write: Callable[[], T]) -> T:
        """Repeat a write for as long as the database cannot take it and the run is ours: blocks go on meanwhile.

        Giving the run back instead would execute them again. A write that was committed although its connection
        was lost is refused when it is repeated, for its rows are there; then the run is given back.
        """
        while True:
            try:
                return write()
            except OperationalError:
                if connection.in_atomic_block or self.cancelled.is_set():
                    raise
                log.warning("the database does not take a checkpoint; trying again", exc_info=True)
                connection.close()
                if self.cancelled.wait(RETRY_SECONDS):
                    raise

    def _stop_running(self) -> None:
        """Cancel the blocks that are being executed, and wait until they have stopped."""
        for task in self.running:
            task.cancel()
        if self.running:
            self.loop.run_until_complete(asyncio.wait(self.running, timeout=5))
        self.running.clear()

    # Children

    def note_progress(self) -> None:
        """A block finished in a child, so this run, and those above it, are not given up either."""
        if self.run.takeovers:
            reset_takeovers(self.lease)
            self.run.takeovers = 0
        if self.parent is not None:
            self.parent.note_progress()

    async def _run_child(
        self, node: RunNode, slug: str, inputs: Mapping[str, Any], max_depth: int
    ) -> ChildResult:
        """Execute the child run of a `workflow` block in a thread of its own."""
        if self.run.depth + 1 > max_depth:
            message = f"{slug} would run at depth {self.run.depth + 1}; max_depth is {max_depth}."
            raise BlockFailure("too_deep", message)
        drivers: list[RunDriver] = []

        def drive() -> ChildResult:
            lease = services.start_child(self.lease, node, slug, inputs)
            if not lease.run.is_terminal:
                driver = RunDriver(lease, self.resources, self.watch, parent=self)
                drivers.append(driver)
                if self.cancelled.is_set():
                    driver.cancelled.set()
                with self.watch(driver):
                    driver.drive()
            child = lease.run
            child.refresh_from_db()
            return ChildResult(
                run_id=str(child.pk),
                status=child.status,
                outputs=child.outputs or {},
                error=child.error,
                cost_usd=child.cost_usd,
                tokens=Tokens(prompt=child.prompt_tokens, completion=child.completion_tokens),
            )

        try:
            return await in_thread(drive)
        except asyncio.CancelledError:
            for driver in drivers:
                driver.cancelled.set()
            raise


def _require_evaluation(node: RunNode) -> None:
    """No dependent block starts after an unevaluated node; the run is released, and resuming evaluates first."""
    if node.evaluated_at is None and block_completed.has_listeners(RunNode):
        raise RuntimeError(f"{node.node_id} is finished but could not be evaluated.")


def _record(node: RunNode, *, will_retry: bool = False) -> NodeRecord:
    return NodeRecord(
        node_id=node.node_id,
        iteration=node.iteration,
        attempt=node.attempt,
        status=node.status,
        output=node.output,
        exit_handle=node.exit_handle,
        error=node.error,
        eval_passed=node.eval_passed,
        eval_score=node.eval_score,
        will_retry=will_retry,
    )
