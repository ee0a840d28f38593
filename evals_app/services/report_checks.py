"""What can be wrong with a report of a run from elsewhere, apart from its shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from workflows_app import clock
from workflows_app.engine.definition import DispatchBlockDef, Fault, WorkflowDefinition
from workflows_app.engine.values.paths import did_you_mean
from workflows_app.models import Workflow

MOST_NODES = 1_000
# Clocks differ; a run from tomorrow is a mistake.
FUTURE_ALLOWED = timedelta(minutes=10)


def faults_of(report: Mapping[str, Any], definition: WorkflowDefinition) -> Iterator[Fault]:
    """Everything wrong with a report that its shape does not show."""
    yield from _time_faults(report, "")
    yield from _unknown_blocks([node["node_id"] for node in report["nodes"]], definition)
    seen: Counter[tuple[str, int]] = Counter()
    counts: Counter[str] = Counter()
    for index, node in enumerate(report["nodes"]):
        place, node_id = f"nodes[{index}]", node["node_id"]
        counts[node_id] += 1
        key = (node_id, node.get("iteration") or counts[node_id])
        seen[key] += 1
        if seen[key] == 2:
            yield Fault(place, None, f"{node_id!r} iteration {key[1]} is reported twice.")
        if "output" not in node and "error" not in node:
            yield Fault(f"{place}.output", None, "is required, unless the block failed and `error` says why.")
        yield from _time_faults(node, f"{place}.")


def further_faults(sent: Any) -> list[Fault]:
    """What else is wrong with a body of the wrong shape, so that all errors are reported at once."""
    if not isinstance(sent, dict) or not isinstance(sent.get("nodes"), list):
        return []
    slug = sent.get("workflow")
    if not isinstance(slug, str) or "version" in sent:
        return []
    workflow = Workflow.objects.select_related("current_version").filter(slug=slug).first()
    if workflow is None or workflow.current_version is None:
        return []
    named = [node.get("node_id") if isinstance(node, dict) else None for node in sent["nodes"][:MOST_NODES]]
    return list(_unknown_blocks(named, workflow.current_version.definition))


def _unknown_blocks(named: Iterable[Any], definition: WorkflowDefinition) -> Iterator[Fault]:
    known = set(definition.blocks)
    for block in definition.blocks.values():
        if isinstance(block, DispatchBlockDef):
            known |= {f"{block.id}.{branch.id}" for branch in block.branches}
    for index, node_id in enumerate(named):
        if isinstance(node_id, str) and node_id not in known:
            hint = did_you_mean(node_id, known) or f"; there are {', '.join(sorted(known))}."
            message = f"the workflow has no block {node_id[:200]!r}{hint}"
            yield Fault(f"nodes[{index}].node_id", None, message)


def _time_faults(item: Mapping[str, Any], prefix: str) -> Iterator[Fault]:
    started, finished = item.get("started_at"), item.get("finished_at")
    if started and finished and finished < started:
        yield Fault(f"{prefix}finished_at", None, "is before started_at.")
    for name, moment in (("started_at", started), ("finished_at", finished)):
        if moment and moment > clock.now() + FUTURE_ALLOWED:
            yield Fault(f"{prefix}{name}", None, "is in the future.")
