"""`runsight restore FILE`: put a backup in the place of the SQLite database."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runsight_site import backups


class Command(BaseCommand):
    """Refuses while anybody has the database open; keeps the replaced one beside it."""

    help = "Replace the SQLite database by a backup; the server and the workers must be stopped."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            aside = backups.put_back(options["file"])
        except (backups.BackupError, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Restored {options['file']}. `runsight up` migrates it if it is older.")
        if aside is not None:
            self.stdout.write(f"The database it replaced is {aside}; delete it when you no longer need it.")
