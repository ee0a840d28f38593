"""Every write. Views, API, admin, commands and executors call these and write nothing themselves."""

from workflows_app.services.checkpoints import (
    begin_run,
    fail_node,
    finish_node,
    finish_run,
    skip_nodes,
    start_node,
)
from workflows_app.services.library import (
    Stale,
    audit,
    cancel_as,
    make_token,
    revoke_token,
    save_as,
    save_provider_key,
    save_soul,
    save_version,
    set_enabled,
)
from workflows_app.services.runs import (
    Refused,
    cancel_run,
    fail_run,
    rerun,
    resolved_souls,
    start_child,
    start_held_run,
    start_run,
)

__all__ = [
    "Refused",
    "Stale",
    "audit",
    "begin_run",
    "cancel_as",
    "cancel_run",
    "fail_node",
    "fail_run",
    "finish_node",
    "finish_run",
    "make_token",
    "rerun",
    "resolved_souls",
    "revoke_token",
    "save_as",
    "save_provider_key",
    "save_soul",
    "save_version",
    "set_enabled",
    "skip_nodes",
    "start_child",
    "start_held_run",
    "start_node",
    "start_run",
]
