"""Executes a workflow in this process, without any table: some blocks frozen, only what is asked for executed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions
from evals_app.cases.budget import Budget, BudgetedSpend
from evals_app.cases.prepare import is_measured
from evals_app.cases.results import NodeOutcome, total_cost
from evals_app.cases.surroundings import Surroundings
from workflows_app.engine.blocks import ChildResult, Tools
from workflows_app.engine.definition import GateBlockDef, WorkflowDefinition
from workflows_app.engine.execute import next_attempt, run_block
from workflows_app.engine.graph import Graph
from workflows_app.engine.inputs import check_inputs
from workflows_app.engine.records import Key, NodeRecord, Step
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens
from workflows_app.engine.schedule import Plan

MOST_BLOCKS_AT_ONCE = 8


def needed_blocks(definition: WorkflowDefinition, asked: Collection[str]) -> frozenset[str]:
    """The asked blocks and everything that may run before them: the rest need not be paid for."""
    graph = Graph(definition)
    needed: set[str] = set()
    for block_id in asked:
        outermost = (*graph.around(block_id), block_id)[0]
        upstream = graph.upstream(outermost)
        needed |= {outermost, *graph.inside(outermost, deep=True)}
        needed |= {other for other in definition.blocks if other in upstream}
    return frozenset(needed)


@dataclass
class Workshop:
    """What all executions of one evaluation share; make it inside the event loop."""

    surroundings: Surroundings
    budget: Budget = field(default_factory=Budget)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_BLOCKS_AT_ONCE))

    def turn(self, step: Step) -> asyncio.Semaphore:
        """A place to run one block; a child run is none, or it would wait for its own blocks' places."""
        return asyncio.Semaphore() if step.kind == "workflow" else self._turns


class Execution:
    """One run of one definition; `plan` and `nodes` tell afterwards what happened."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        inputs: Mapping[str, Any],
        workshop: Workshop,
        *,
        fixtures: Mapping[str, Any] | None = None,
        needed: frozenset[str] | None = None,
        depth: int = 0,
    ) -> None:
        self.definition = definition
        self.workshop = workshop
        self.needed = needed
        self.depth = depth
        self.nodes: list[NodeOutcome] = []
        self.inputs, faults = check_inputs(definition, dict(inputs))
        if faults:
            raise BlockFailure("bad_inputs", "; ".join(map(str, faults)), is_retryable=False)
        surroundings = workshop.surroundings
        self.spend = BudgetedSpend(definition, surroundings.price_overrides, budget=workshop.budget)
        self._judges = _judges(definition)
        self.plan = Plan(
            definition,
            inputs=self.inputs,
            run={"id": "eval", "number": 0, "version": 0},
            frozen=fixtures,
            judge=self._note_frozen,
        )

    @property
    def cost_usd(self) -> float | None:
        return total_cost(node.cost_usd for node in self.nodes if not node.is_frozen)

    async def run(self) -> None:
        """Run to the end, or as far as anybody asked."""
        flights: dict[asyncio.Task[NodeRecord], Key] = {}
        try:
            while not self.plan.failure:
                under_way = set(flights.values())
                for step in self.plan.ready():
                    if step.key not in under_way and self._is_needed(step):
                        flights[asyncio.create_task(self._execute(step))] = step.key
                if not flights:
                    return
                done, _ = await asyncio.wait(flights, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    flights.pop(task)
                    self.plan.record(task.result())
        finally:
            for task in flights:
                task.cancel()
            await asyncio.gather(*flights, return_exceptions=True)
            self.spend.close()

    def _is_needed(self, step: Step) -> bool:
        return self.needed is None or step.block_id in self.needed

    async def _execute(self, step: Step) -> NodeRecord:
        """Run one node, as often as its retry rules allow."""
        block = self.definition.blocks[step.block_id]
        attempt = 0
        while True:
            attempt += 1
            started = time.monotonic()
            try:
                async with self.workshop.turn(step):
                    result = await run_block(step, self.definition, self.plan.context, self._tools())
            except BlockFailure as failure:
                delay = next_attempt(block, failure, attempt)
                if delay is None:
                    return self._failed(step, failure)
                await asyncio.sleep(delay)
            except Exception as error:  # noqa: BLE001 - shown as the result of the case
                broken = BlockFailure("internal", f"{type(error).__name__}: {error}", is_retryable=False)
                return self._failed(step, broken)
            else:
                if result.latency_ms is None:
                    result = replace(result, latency_ms=(time.monotonic() - started) * 1000)
                return self._finished(step, result)

    def _tools(self) -> Tools:
        surroundings = self.workshop.surroundings
        return Tools(
            spend=self.spend,
            souls={**surroundings.souls, **self.definition.souls},
            provider=surroundings.provider,
            sandbox=surroundings.sandbox if self.definition.has_code else None,
            price_overrides=surroundings.price_overrides,
            run_child=self._run_child,
        )

    # What became of nodes

    def _failed(self, step: Step, failure: BlockFailure) -> NodeRecord:
        error: dict[str, Any] = {**failure.to_dict()}
        self.nodes.append(
            NodeOutcome(node_id=step.node_id, iteration=step.iteration, error=error, cost_usd=0.0)
        )
        return NodeRecord(node_id=step.node_id, iteration=step.iteration, status="failed", error=error)

    def _finished(self, step: Step, result: BlockResult) -> NodeRecord:
        outcome = NodeOutcome(
            node_id=step.node_id,
            iteration=step.iteration,
            output=result.output,
            cost_usd=None if result.cost_usd is None else float(result.cost_usd),
            tokens=result.tokens.to_dict() if result.tokens else None,
            latency_ms=result.latency_ms,
            soul_id=result.soul_id,
            soul_version=result.soul_version,
        )
        self.nodes.append(outcome)
        record = NodeRecord(
            node_id=step.node_id,
            iteration=step.iteration,
            output=result.output,
            exit_handle=result.exit_handle,
            error=result.error,
        )
        return self._judged(record, outcome)

    def _note_frozen(self, record: NodeRecord) -> NodeRecord:
        outcome = NodeOutcome(
            node_id=record.node_id, iteration=record.iteration, output=record.output, is_frozen=True
        )
        self.nodes.append(outcome)
        return self._judged(record, outcome)

    def _judged(self, record: NodeRecord, outcome: NodeOutcome) -> NodeRecord:
        """The record with the verdict of the block's own assertions, if a gate may ask for it."""
        judges = self._judges.get(record.node_id)
        if judges is None:
            return record
        graded = judges[outcome.is_frozen].run(context_of(self, outcome))
        if not graded.results:
            return record
        return replace(record, eval_passed=graded.passed(), eval_score=graded.aggregate_score)

    # Children

    async def _run_child(self, workflow_ref: str, inputs: Mapping[str, Any], max_depth: int) -> ChildResult:
        if self.depth + 1 > max_depth:
            message = f"{workflow_ref} would run at depth {self.depth + 1}; max_depth is {max_depth}."
            raise BlockFailure("too_deep", message, is_retryable=False)
        child = Execution(self._child_definition(workflow_ref), inputs, self.workshop, depth=self.depth + 1)
        await child.run()
        cost, failure = child.cost_usd, child.plan.failure
        return ChildResult(
            run_id="eval",
            status="failed" if failure else "completed",
            outputs={} if failure else child.plan.outputs(),
            error=failure.to_dict() if failure else None,
            cost_usd=None if cost is None else Decimal(str(cost)),
            tokens=_total_tokens(child.nodes),
        )

    def _child_definition(self, slug: str) -> WorkflowDefinition:
        try:
            found = self.workshop.surroundings.find_workflow(slug)
        except LookupError as error:
            raise BlockFailure("unknown_workflow", str(error), is_retryable=False) from None
        if found is None:
            message = f"There is no workflow '{slug}' here to run; give the block a fixture."
            raise BlockFailure("unknown_workflow", message, is_retryable=False)
        return found


def context_of(execution: Execution, node: NodeOutcome) -> AssertionContext:
    """What the assertions of an executed node may look at."""
    definition = execution.definition
    return AssertionContext(
        output=node.output,
        soul_id=node.soul_id,
        soul_version=node.soul_version,
        block_id=node.node_id,
        block_type=definition.blocks[node.node_id.partition(".")[0]].type,
        cost_usd=None if node.is_frozen else node.cost_usd,
        total_tokens=node.tokens["total"] if node.tokens else None,
        latency_ms=node.latency_ms,
        variables=execution.inputs,
        workflow_id=definition.slug or definition.name,
    )


def _judges(definition: WorkflowDefinition) -> dict[str, tuple[AssertionPlan, AssertionPlan]]:
    """The blocks' own assertions, for outputs that were executed and for frozen ones, where gates ask for them."""
    gates = [block for block in definition.blocks.values() if isinstance(block, GateBlockDef)]
    if all(gate.soul_ref for gate in gates):
        return {}
    return {
        block.id: (
            compile_assertions(block.assertions),
            compile_assertions([one for one in block.assertions if not is_measured(one)]),
        )
        for block in definition.blocks.values()
        if block.assertions
    }


def _total_tokens(nodes: list[NodeOutcome]) -> Tokens:
    known = [node.tokens for node in nodes if node.tokens]
    return Tokens(
        prompt=sum(one["prompt"] for one in known), completion=sum(one["completion"] for one in known)
    )
