"""The facts workflows_app announces, each after its commit and at least once."""

from django.dispatch import Signal

# A run is waiting to be executed. Arguments: run_id (UUID).
run_ready = Signal()

# A run was cancelled. Arguments: run_id (UUID).
run_cancelled = Signal()

# A node reached `completed`. Arguments: node (RunNode, with its run and version loaded).
block_completed = Signal()

# A run reached a terminal state. Arguments: run (Run).
run_finished = Signal()

# An executor has looked for what dead processes left behind, as it does every few seconds. No arguments.
swept = Signal()
