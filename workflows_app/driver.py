"""Executes one run that we hold the lease of, from its last checkpoint to its end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from workflows_app import clock, credentials, services
from workflows_app.engine.blocks import ChildResult, Tools
from workflows_app.engine.definition import BaseBlockDef
from workflows_app.engine.execute import next_attempt, run_block
from workflows_app.engine.limits import Spend
from workflows_app.engine.records import Key, NodeRecord, Step
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens
from workflows_app.engine.schedule import Plan
from workflows_app.events import LeaseLost
from workflows_app.leases import MOST_TAKEOVERS, Lease, release
from workflows_app.models import NodeStatus, RunNode, RunStatus
from workflows_app.signals import block_completed
from workflows_app.workbench import Workbench, in_thread

log = structlog.get_logger("runsight.driver")

MOST_BLOCKS_AT_ONCE = 8
# How soon a cancel, or a retry that is due, is noticed while blocks are under way.
NOTICE_SECONDS = 0.2


@dataclass
class Flight:
    """A block under way."""

    step: Step
    node: RunNode
    started: float


class RunDriver:
    """The loop between the plan, the blocks and the tables."""

    def __init__(self, lease: Lease, bench: Workbench, watch: Callable[[RunDriver], Any]) -> None:
        self.lease = lease
        self.bench = bench
        self.watch = watch  # lets a child be seen by whoever renews leases
        self.run = lease.run
        self.definition = lease.run.version.definition
        self.souls = services.resolved_souls(lease.run)
        self.cancelled = threading.Event()
        self.flights: dict[asyncio.Task[BlockResult], Flight] = {}
        self.not_before: dict[Key, float] = {}
        self.failures: dict[Key, int] = {}

    def drive(self) -> None:
        """Run to the end. A lost lease ends it in silence; a fault of ours gives the run back to be tried again."""
        with self.bench.loop() as self.loop, structlog.contextvars.bound_contextvars(run=str(self.run.pk)):
            self._drive_or_give_back()

    def _drive_or_give_back(self) -> None:
        try:
            if self.run.takeovers > MOST_TAKEOVERS:
                services.fail_run(
                    self.lease,
                    "abandoned",
                    f"Given up after {self.run.takeovers} takeovers without a block finishing: "
                    "each process that executed this run died or broke.",
                )
                return
            self._drive()
        except LeaseLost:
            log.info("lease lost")
        except Exception:
            log.exception("driver broke; the run is given back")
            release(self.lease)
        finally:
            self._abandon_flights()

    def _drive(self) -> None:
        is_new = self.run.started_at is None  # then it has no nodes to read
        services.begin_run(self.lease)
        self.spend = self._new_ledger()
        plan = self._resume([] if is_new else list(self.run.nodes.in_order()))
        while True:
            self._record_skips(plan)
            if plan.failure or (plan.is_finished and not self.flights):
                break
            self._start_ready(plan)
            self._await_some()
            for task in [one for one in self.flights if one.done()]:
                self._land(plan, self.flights.pop(task), task)
        if plan.failure:
            self._abandon_flights()
            services.fail_run(self.lease, plan.failure.kind, plan.failure.message)
        else:
            services.finish_run(self.lease, RunStatus.COMPLETED, outputs=plan.outputs())

    # Resuming

    def _resume(self, nodes: list[RunNode]) -> Plan:
        """The plan as the rows tell it, after evaluating what an earlier owner left unevaluated."""
        for node in nodes:
            node.run = self.run
            if node.status == NodeStatus.COMPLETED and node.evaluated_at is None:
                block_completed.send_robust(sender=RunNode, node=node)
                _insist_on_evaluation(node)
            if node.status == NodeStatus.COMPLETED:
                self.spend.add(node.node_id.partition(".")[0], node.cost_usd, node.total_tokens)
            elif node.status == NodeStatus.RUNNING:
                self._mark_interrupted(node)
        return Plan(
            self.definition,
            [self._record_as_it_stood(node) for node in nodes],
            inputs=self.run.inputs,
            run={"id": str(self.run.pk), "number": self.run.number, "version": self.run.version.number},
        )

    def _new_ledger(self) -> Spend:
        now = clock.shared_now()
        return Spend(
            self.definition,
            credentials.price_overrides(),
            elapsed_seconds=max(0.0, (now - (self.run.started_at or now)).total_seconds()),
        )

    def _mark_interrupted(self, node: RunNode) -> None:
        lost = BlockFailure(
            "interrupted", "The process that executed this block stopped; it is started again."
        )
        services.fail_node(self.lease, node, lost, will_retry=True)

    def _record_as_it_stood(self, node: RunNode) -> NodeRecord:
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
        return next_attempt(self._block(key[0]), failure, self.failures[key])

    def _block(self, node_id: str) -> BaseBlockDef:
        return self.definition.blocks[node_id.partition(".")[0]]

    # Executing

    def _record_skips(self, plan: Plan) -> None:
        skipped = plan.skipped()
        if skipped:
            for node in services.skip_nodes(self.lease, skipped, self.definition):
                plan.record(_record(node))

    def _start_ready(self, plan: Plan) -> None:
        under_way = {flight.step.key for flight in self.flights.values()}
        for step in plan.ready():
            if len(self.flights) >= MOST_BLOCKS_AT_ONCE:
                return
            if step.key not in under_way and self.not_before.get(step.key, 0.0) <= time.monotonic():
                self._start(plan, step)

    def _start(self, plan: Plan, step: Step) -> None:
        block = self.definition.blocks[step.block_id]
        node = services.start_node(self.lease, step, block.type, step.attempt)
        accesses = credentials.provider_accesses()  # here: the blocks' loop may not read tables
        tools = Tools(
            souls=self.souls,
            provider=lambda name: self.bench.provider(name, accesses.get(name)),
            sandbox=self.bench.sandbox,
            threads=self.bench.threads,
            is_cancelled=self.cancelled.is_set,
            spend=self.spend,
            price_overrides=credentials.price_overrides(),
            run_child=lambda slug, inputs, depth: self._run_child(node, slug, inputs, depth),
        )
        call = run_block(step, self.definition, plan.context, tools)
        self.flights[self.loop.create_task(call)] = Flight(step, node, time.monotonic())

    def _await_some(self) -> None:
        if self.cancelled.is_set():
            raise LeaseLost(f"Run {self.run.pk} was cancelled or taken over.")
        if self.flights:
            # The loop turns only here: tables are read and written in between, in this same thread.
            some = asyncio.wait(self.flights, timeout=NOTICE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            self.loop.run_until_complete(some)
        else:
            self.cancelled.wait(NOTICE_SECONDS)

    def _land(self, plan: Plan, flight: Flight, task: asyncio.Task[BlockResult]) -> None:
        """Checkpoint a block that finished or failed, and tell the plan."""
        node = flight.node
        elapsed_ms = (time.monotonic() - flight.started) * 1000
        try:
            result = task.result()
        except BlockFailure as failure:
            if self.cancelled.is_set():  # it failed because we stopped it; the fence may still be ours
                raise LeaseLost(f"Run {self.run.pk} was cancelled or given back.") from None
            self._fail(plan, node, failure)
        except (asyncio.CancelledError, LeaseLost):
            raise LeaseLost(f"Run {self.run.pk} was cancelled or taken over.") from None
        except Exception as error:
            log.exception("block broke", node_id=node.node_id)
            self._fail(
                plan, node, BlockFailure("internal", f"{type(error).__name__}: {error}", is_retryable=False)
            )
        else:
            if result.latency_ms is None:
                result = replace(result, latency_ms=elapsed_ms)
            if (story := clock.current_story()) is not None:
                story.advance(result.latency_ms or 0.0)
            services.finish_node(self.lease, node, result)
            _insist_on_evaluation(node)
            plan.record(_record(node))

    def _fail(self, plan: Plan, node: RunNode, failure: BlockFailure) -> None:
        key = (node.node_id, node.iteration)
        delay = self._retry_delay(key, failure)
        services.fail_node(self.lease, node, failure, will_retry=delay is not None)
        if delay is not None:
            self.not_before[key] = time.monotonic() + delay
        plan.record(_record(node, will_retry=delay is not None))

    def _abandon_flights(self) -> None:
        """Stop the blocks under way, and wait until they have."""
        for task in self.flights:
            task.cancel()
        if self.flights:
            self.loop.run_until_complete(asyncio.wait(self.flights, timeout=5))
        self.flights.clear()

    # Children

    async def _run_child(
        self, node: RunNode, slug: str, inputs: Mapping[str, Any], max_depth: int
    ) -> ChildResult:
        """Execute the child run of a `workflow` block in a thread of its own."""
        if self.run.depth + 1 > max_depth:
            raise BlockFailure(
                "too_deep",
                f"{slug} would run at depth {self.run.depth + 1}; max_depth is {max_depth}.",
                is_retryable=False,
            )
        drivers: list[RunDriver] = []

        def drive() -> ChildResult:
            lease = services.start_child(self.lease, node, slug, inputs)
            if not lease.run.is_terminal:
                driver = RunDriver(lease, self.bench, self.watch)
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


def _insist_on_evaluation(node: RunNode) -> None:
    """No dependent block starts on an unevaluated node; the run is given back, and resuming evaluates first."""
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
