"""Commands that from the shell start without Django, as management commands."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType
from typing import Any

from django.core.management.base import BaseCommand

from evals_app import cli


class CliCommand(BaseCommand):
    """A module of `evals_app.cli` with the same arguments, output and exit codes."""

    module: ModuleType
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.module.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        name = self.module.__name__.rpartition(".")[2]
        sys.exit(cli.guarded(name, lambda: self.module.main(argparse.Namespace(**options))))
