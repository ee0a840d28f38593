"""Executes cases in this process, without any table: several at once, some blocks frozen, only the needed ones executed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions
from evals_app.cases.budget import Budget
from evals_app.cases.document import Document
from evals_app.cases.environment import CaseEnvironment
from evals_app.cases.prepare import BlockAssertions, PreparedCase, context_for_outcome, is_measured
from evals_app.cases.results import ERROR, FAILED, Attempt, BlockScore, CaseResult, NodeOutcome, total_cost
from evals_app.cases.verdicts import attempt_of, decide, skipped
from workflows_app.engine.blocks.base import ChildResult, Tools
from workflows_app.engine.definition import GateBlockDef, WorkflowBlockDef, WorkflowDefinition
from workflows_app.engine.execute import next_attempt, run_block
from workflows_app.engine.graph import Graph
from workflows_app.engine.limits import CallEstimate, Spend
from workflows_app.engine.records import Key, NodeRecord, Step
from workflows_app.engine.results import BlockFailure, BlockResult, Tokens
from workflows_app.engine.schedule import MOST_BLOCKS_AT_ONCE, Plan
from workflows_app.engine.values.inputs import check_inputs

OVER_BUDGET = "over_budget"
# A block that failed for one of these says nothing about the workflow: the case could not be tried.
NOT_THE_WORKFLOW = frozenset(
    {
        OVER_BUDGET,
        "auth",
        "blocked_address",
        "no_sandbox",
        "quota",
        "rate_limited",
        "sandbox_unavailable",
        "server_error",
        "unknown_provider",
        "unknown_soul",
        "unknown_workflow",
        "unreachable",
    }
)


def needed_blocks(definition: WorkflowDefinition, wanted: Collection[str]) -> frozenset[str]:
    """The wanted blocks and everything that may run before them; the rest would cost money for nothing."""
    graph = Graph(definition)
    needed: set[str] = set()
    for block_id in wanted:
        outermost = (*graph.around(block_id), block_id)[0]
        upstream = graph.upstream(outermost)
        needed |= {outermost, *graph.inside(outermost, deep=True)}
        needed |= {other for other in definition.blocks if other in upstream}
    return frozenset(needed)


@dataclass
class BudgetedSpend(Spend):
    """The spending of one case, which also counts in the budget of the evaluation."""

    budget: Budget = field(default_factory=Budget)
    _reserved: dict[str, list[Decimal]] = field(default_factory=dict, init=False)

    def check_call(self, block_id: str, call: CallEstimate) -> list[str]:
        """Refuse a call that does not fit under the run's caps or the budget."""
        warnings = super().check_call(block_id, call)
        if self.budget.cap_usd is None:
            return warnings
        cost = call.max_cost(self.overrides)
        unknown = f"--max-cost cannot be kept: the price of model '{call.model}' is unknown."
        refusal = unknown if cost is None else self.budget.refusal(cost)
        if cost is None or refusal is not None:
            raise BlockFailure(OVER_BUDGET, refusal or unknown, is_retryable=False)
        self._reserved.setdefault(block_id, []).append(cost)
        self.budget.reserved_usd += cost
        return warnings

    def add(self, block_id: str, cost_usd: Decimal | float | None, tokens: int | None) -> None:
        """Note what a call took and give back what was reserved for it."""
        super().add(block_id, cost_usd, tokens)
        if isinstance(self.definition.blocks[block_id], WorkflowBlockDef):
            return  # the child run has paid for itself
        if self._reserved.get(block_id):
            self.budget.reserved_usd -= self._reserved[block_id].pop()
        self.budget.spent_usd += Decimal(str(cost_usd or 0))

    def close(self) -> None:
        """Give back what calls that failed had reserved."""
        for costs in self._reserved.values():
            self.budget.reserved_usd -= sum(costs, Decimal(0))
        self._reserved.clear()


@dataclass
class Shared:
    """What all executions of one evaluation share; make it inside the event loop."""

    environment: CaseEnvironment
    budget: Budget
    block_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_BLOCKS_AT_ONCE))

    def slot(self, step: Step) -> asyncio.Semaphore:
        """A slot to run one block; a child run takes none, or it would wait for its own blocks' slots."""
        return asyncio.Semaphore() if step.kind == "workflow" else self.block_slots


class Execution:
    """One run of one definition; afterwards `plan` and `nodes` hold what happened."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        inputs: Mapping[str, Any],
        shared: Shared,
        *,
        name: str,
        fixtures: Mapping[str, Any] | None = None,
        needed: frozenset[str] | None = None,
        depth: int = 0,
    ) -> None:
        self.definition = definition
        self.name = name
        self.shared = shared
        self.needed = needed
        self.depth = depth
        self.nodes: list[NodeOutcome] = []
        self.inputs, faults = check_inputs(definition, dict(inputs))
        if faults:
            raise BlockFailure("bad_inputs", "; ".join(map(str, faults)), is_retryable=False)
        self.spend = BudgetedSpend(definition, shared.environment.price_overrides, budget=shared.budget)
        self._gate_plans = _gate_plans(definition)
        self.plan = Plan(
            definition,
            inputs=self.inputs,
            run={"id": "eval", "number": 0, "version": 0},
            frozen=fixtures,
            evaluate_frozen=self._add_frozen,
        )

    @property
    def cost_usd(self) -> float | None:
        return total_cost(node.cost_usd for node in self.nodes if not node.is_frozen)

    def token_count(self, kind: str) -> int:
        return sum(node.tokens[kind] for node in self.nodes if node.tokens)

    async def run(self) -> None:
        """Run to the end, or as far as is needed."""
        running: dict[asyncio.Task[NodeRecord], Key] = {}
        try:
            while not self.plan.failure:
                started = set(running.values())
                for step in self.plan.ready():
                    if step.key not in started and (self.needed is None or step.block_id in self.needed):
                        running[asyncio.create_task(self._execute(step))] = step.key
                if not running:
                    return
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    running.pop(task)
                    self.plan.record(task.result())
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self.spend.close()

    async def _execute(self, step: Step) -> NodeRecord:
        """Run one node, as often as its retry rules allow."""
        block = self.definition.blocks[step.block_id]
        attempt = 0
        while True:
            attempt += 1
            started = time.monotonic()
            try:
                async with self.shared.slot(step):
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
        environment = self.shared.environment
        return Tools(
            spend=self.spend,
            souls={**environment.souls, **self.definition.souls},
            provider=environment.provider,
            sandbox=environment.sandbox if self.definition.has_code else None,
            price_overrides=environment.price_overrides,
            run_child=self._run_child,
        )

    def _failed(self, step: Step, failure: BlockFailure) -> NodeRecord:
        error: dict[str, Any] = {**failure.to_dict()}
        self._add_node(step, error=error, cost_usd=0.0)
        return NodeRecord(node_id=step.node_id, iteration=step.iteration, status="failed", error=error)

    def _finished(self, step: Step, result: BlockResult) -> NodeRecord:
        node = self._add_node(step, **result.facts())
        record = NodeRecord(
            node_id=step.node_id,
            iteration=step.iteration,
            output=result.output,
            exit_handle=result.exit_handle,
            error=result.error,
        )
        return self._with_verdict(record, node)

    def _add_frozen(self, record: NodeRecord) -> NodeRecord:
        return self._with_verdict(record, self._add_node(record, output=record.output, is_frozen=True))

    def _add_node(self, step: Step | NodeRecord, **facts: Any) -> NodeOutcome:
        self.nodes.append(NodeOutcome(node_id=step.node_id, iteration=step.iteration, **facts))
        return self.nodes[-1]

    def _with_verdict(self, record: NodeRecord, node: NodeOutcome) -> NodeRecord:
        """The record with the verdict of the block's own assertions, if a gate may read it."""
        plans = self._gate_plans.get(record.node_id)
        if plans is None or not plans[node.is_frozen]:
            return record
        graded = plans[node.is_frozen].run(self.context_for(node))
        return replace(record, eval_passed=graded.passed(), eval_score=graded.aggregate_score)

    def context_for(self, node: NodeOutcome) -> AssertionContext:
        """What the assertions of one of its nodes are checked against."""
        return context_for_outcome(self.definition, node, self.inputs, self.name)

    async def _run_child(self, workflow_ref: str, inputs: Mapping[str, Any], max_depth: int) -> ChildResult:
        if self.depth + 1 > max_depth:
            message = f"{workflow_ref} would run at depth {self.depth + 1}; max_depth is {max_depth}."
            raise BlockFailure("too_deep", message, is_retryable=False)
        try:
            definition = self.shared.environment.find_workflow(workflow_ref)
        except LookupError as error:
            raise BlockFailure("unknown_workflow", str(error), is_retryable=False) from None
        if definition is None:
            message = f"There is no workflow '{workflow_ref}' here to run; give the block a fixture."
            raise BlockFailure("unknown_workflow", message, is_retryable=False)
        child = Execution(definition, inputs, self.shared, name=workflow_ref, depth=self.depth + 1)
        await child.run()
        cost, failure = child.cost_usd, child.plan.failure
        return ChildResult(
            run_id="eval",
            status="failed" if failure else "completed",
            outputs={} if failure else child.plan.context.outputs(),
            error=failure.to_dict() if failure else None,
            cost_usd=None if cost is None else Decimal(str(cost)),
            tokens=Tokens(prompt=child.token_count("prompt"), completion=child.token_count("completion")),
        )


def _gate_plans(definition: WorkflowDefinition) -> dict[str, tuple[AssertionPlan, AssertionPlan]]:
    """The blocks' own assertions, for executed and for frozen outputs, where a gate reads their verdict."""
    gates = [block for block in definition.blocks.values() if isinstance(block, GateBlockDef)]
    if all(gate.soul_ref for gate in gates):
        return {}
    return {
        block_id: (
            compile_assertions(assertions),
            compile_assertions([one for one in assertions if not is_measured(one)]),
        )
        for block_id, assertions in definition.assertions_by_block.items()
    }


async def execute_cases(
    document: Document,
    cases: Mapping[int, PreparedCase],
    environment: CaseEnvironment,
    budget: Budget,
    *,
    at_once: int,
    why_skipped: Callable[[], str | None],
    finish: Callable[[int, CaseResult], None],
) -> None:
    """Run cases to their verdicts, and `finish` each by its position."""
    shared = Shared(environment, budget)
    slots = asyncio.Semaphore(at_once)

    async def execute(position: int, prepared: PreparedCase) -> None:
        async with slots:
            reason = why_skipped()
            if reason:
                finish(position, skipped(prepared, reason))
                return
            attempts = [_try_case(document, prepared, shared) for _ in range(prepared.case.repeats)]
            finish(position, decide(prepared, tuple(await asyncio.gather(*attempts))))

    try:
        async with asyncio.TaskGroup() as group:
            for position, prepared in cases.items():
                group.create_task(execute(position, prepared))
    finally:
        await environment.close()


async def _try_case(document: Document, prepared: PreparedCase, shared: Shared) -> Attempt:
    """Execute what the case needs, then check its blocks."""
    started = time.perf_counter()
    case = prepared.case
    try:
        execution = Execution(
            document.definition,
            case.inputs,
            shared,
            name=document.name,
            fixtures=case.fixtures,
            needed=needed_blocks(document.definition, [block.block_id for block in prepared.blocks]),
        )
    except BlockFailure as refused:
        return Attempt(status=FAILED, score=0.0, error=refused.message)
    await execution.run()
    blocks = tuple([await _score(block, execution) for block in prepared.blocks])
    attempt = attempt_of(blocks, seconds=time.perf_counter() - started)
    is_broken = any(node.error and node.error["type"] in NOT_THE_WORKFLOW for node in execution.nodes)
    failure = execution.plan.failure
    return replace(
        attempt,
        status=ERROR if is_broken and attempt.status == FAILED else attempt.status,
        error=attempt.error or (failure.message if failure else None),
        cost_usd=execution.cost_usd,
        nodes=tuple(execution.nodes),
        inputs=execution.inputs,
        run_failed=failure is not None,
    )


async def _score(block: BlockAssertions, execution: Execution) -> BlockScore:
    """Check the last output of a block; one without an output has failed."""
    record = execution.plan.context.records.get(block.block_id)
    failure = execution.plan.failure
    if record is None:
        reason = failure.message if failure else "it was not executed: no route led to it"
    elif record.status != "completed":
        reason = str((record.error or {}).get("message", "it failed"))
    else:
        key = (record.node_id, record.iteration)
        nodes = (one for one in reversed(execution.nodes) if (one.node_id, one.iteration) == key)
        # A block that the plan itself completes has an output and nothing else.
        alone = NodeOutcome(node_id=record.node_id, iteration=record.iteration, output=str(record.output))
        node = next(nodes, alone)
        return await asyncio.to_thread(block.grade, execution.context_for(node), is_frozen=node.is_frozen)
    return BlockScore(block.block_id, 0.0, False, error=reason)
