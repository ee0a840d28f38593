"""The compiled assertions of a block, prepared once per workflow version, and what they are checked against."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals_app.assertions import AssertionContext, AssertionPlan, compile_assertions
from workflows_app.models import RunNode, WorkflowVersion

KEPT_VERSIONS = 256

_kept: OrderedDict[str, Mapping[str, BlockPlan]] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class BlockPlan:
    """A block's assertions, ready to run, and the key by which each is followed from version to version."""

    assertions: AssertionPlan
    keys: tuple[str, ...]


def plan_for(version: WorkflowVersion, block_id: str) -> BlockPlan | None:
    """The plan of one block, or None if it has no assertions."""
    with _lock:
        plans = _kept.get(version.sha256)
        if plans is not None:
            _kept.move_to_end(version.sha256)
    if plans is None:
        configs = version.definition.assertions_by_block
        plans = {
            name: BlockPlan(compile_assertions(assertions), tuple(map(assertion_key, assertions)))
            for name, assertions in configs.items()
        }
        with _lock:
            _kept[version.sha256] = plans
            while len(_kept) > KEPT_VERSIONS:
                _kept.popitem(last=False)
    return plans.get(block_id)


def keys_for(version: WorkflowVersion, block_id: str) -> tuple[str, ...]:
    """The keys of a block's assertions in the order written; none if the document can no longer be read."""
    plan = plan_for(version, block_id) if version.readable_definition else None
    return plan.keys if plan else ()


def context_for_node(node: RunNode) -> AssertionContext:
    """What the assertions of a node are checked against."""
    run = node.run
    return AssertionContext.for_node(
        node,
        block_type=node.block_type,
        variables=run.inputs,
        run_id=str(run.pk),
        workflow_id=run.workflow.slug,
    )


def assertion_key(config: Any) -> str:
    """What makes an assertion the same one in another version: what it checks, not how much it weighs."""
    if not isinstance(config, dict):
        return "invalid"
    checked = {name: value for name, value in config.items() if name not in ("weight", "metric")}
    digest = hashlib.sha256(json.dumps(checked, sort_keys=True, default=str).encode()).hexdigest()[:6]
    return f"{config.get('type')}#{digest}"
