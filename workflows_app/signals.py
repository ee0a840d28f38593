"""The facts workflows_app announces, each after its commit and at least once."""

from django.dispatch import Signal

# A node reached `completed`. Arguments: node (RunNode, with its run and version at hand).
block_completed = Signal()

# A run reached a terminal state. Arguments: run (Run).
run_finished = Signal()

# An executor has looked for what dead processes left behind, as it does every few seconds. No arguments.
swept = Signal()
