"""`runsight validate` inside Django."""

from __future__ import annotations

from evals_app.cli import validate
from evals_app.management.commands._cli import CliCommand


class Command(CliCommand):
    module = validate
    help = validate.DESCRIPTION
