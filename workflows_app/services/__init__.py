"""Every write. Views, API, admin, commands and executors call these and write nothing themselves."""

from workflows_app.services.checkpoints import (
    begin_run,
    fail_node,
    finish_node,
    finish_run,
    node_facts,
    skip_nodes,
    start_node,
    verdict_of,
)
from workflows_app.services.library import (
    Stale,
    audit,
    save_provider_key,
    save_soul,
    save_version,
    set_enabled,
)
from workflows_app.services.runs import (
    Refused,
    cancel_run,
    fail_run,
    next_run_number,
    rerun,
    resolve,
    resolved_souls,
    start_child,
    start_held_run,
    start_run,
)
from workflows_app.services.tokens import make_token, revoke_token

__all__ = [
    "Refused",
    "Stale",
    "audit",
    "begin_run",
    "cancel_run",
    "fail_node",
    "fail_run",
    "finish_node",
    "finish_run",
    "make_token",
    "next_run_number",
    "node_facts",
    "rerun",
    "resolve",
    "resolved_souls",
    "revoke_token",
    "save_provider_key",
    "save_soul",
    "save_version",
    "set_enabled",
    "skip_nodes",
    "start_child",
    "start_held_run",
    "start_node",
    "start_run",
    "verdict_of",
]
