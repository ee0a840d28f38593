"""`runsight import_workflows <dir>`: save every YAML file of a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.parse import SUFFIXES
from workflows_app.services.files import import_file


class Command(BaseCommand):
    """Imports a folder, all of it or nothing."""

    help = "Save every YAML file of a folder as a workflow; an unchanged one makes no new version."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}.", returncode=2)
        waiting = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
        failed: dict[Path, InvalidDocument] = {}
        if not waiting:
            raise CommandError(f"{folder} has no .yaml or .yml file.", returncode=2)
        with transaction.atomic():
            # A file may refer to one that comes later, so go round until nothing more can be saved.
            while waiting:
                failed = {path: bad for path in waiting if (bad := self._import(path)) is not None}
                if len(failed) == len(waiting):
                    break
                waiting = list(failed)
            if failed:
                for path, invalid in failed.items():
                    for fault in invalid.faults:
                        self.stderr.write(f"{path.name}: {fault}")
                raise CommandError(
                    f"{len(failed)} of the files have errors; nothing was imported.", returncode=1
                )

    def _import(self, path: Path) -> InvalidDocument | None:
        try:
            version = import_file(path)
        except InvalidDocument as invalid:
            return invalid
        self.stdout.write(f"{version.workflow.slug}: version {version.number}")
        return None
