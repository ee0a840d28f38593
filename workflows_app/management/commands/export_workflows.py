"""`runsight export_workflows <dir>`: write every workflow to a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from workflows_app.services.files import export_all


class Command(BaseCommand):
    """Exports each workflow's current version."""

    help = "Write each workflow's current version to <dir>/<slug>.yaml."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        for path in export_all(options["folder"]):
            self.stdout.write(str(path))
