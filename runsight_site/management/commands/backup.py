"""`runsight backup FILE`: a copy of the SQLite database, while everything runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from runsight_site import backups


class Command(BaseCommand):
    """Copies as of one moment; nobody waits meanwhile."""

    help = "Copy the SQLite database to a file while the server runs. For PostgreSQL it says what to use."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace a file that exists")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            backups.back_up(path, overwrite=options["force"])
        except (backups.BackupError, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Backed up to {path} ({path.stat().st_size / 1e6:,.1f} MB).")
        if (settings.RUNSIGHT_HOME / "secret_key").exists():
            self.stdout.write(
                f"Keep {settings.RUNSIGHT_HOME / 'secret_key'} too, in another place: "
                "stored provider keys cannot be read without it."
            )
