"""`runsight evaluate` inside Django."""

from __future__ import annotations

from evals_app.cli import evaluate
from evals_app.management.commands._cli import CliCommand


class Command(CliCommand):
    module = evaluate
    help = evaluate.DESCRIPTION
