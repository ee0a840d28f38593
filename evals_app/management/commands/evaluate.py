"""`runsight evaluate` inside Django; from the shell it starts without it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand

from evals_app import cli
from evals_app.cli import evaluate


class Command(BaseCommand):
    """The same arguments, output and exit codes."""

    help = evaluate.DESCRIPTION
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        evaluate.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(cli.guarded("evaluate", lambda: evaluate.evaluate(argparse.Namespace(**options))))
