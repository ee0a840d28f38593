"""`runsight prune --keep 90d`: delete old runs, keep their statistics."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from evals_app.services import retention

UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def span(text: str) -> timedelta:
    """`90d`, `12w` or `36h`."""
    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time span; use a number and h, d or w, for example 90d"
        )
    return timedelta(**{UNITS[found[2]]: int(found[1])})


class Command(BaseCommand):
    """Deletes in small batches, so that nothing else waits."""

    help = "Delete runs that ended longer ago than --keep; observations, statistics and regressions stay."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--keep", type=span, required=True, help="how long runs are kept: 90d, 12w, 36h")
        parser.add_argument("--dry-run", action="store_true", help="only say how many would go")

    def handle(self, *args: Any, **options: Any) -> None:
        keep: timedelta = options["keep"]
        if options["dry_run"]:
            self.stdout.write(f"{retention.candidates(timezone.now() - keep).count():,} runs would go.")
            return
        shows_progress = self.stdout.isatty()

        def show(gone: retention.Pruned) -> None:
            if shows_progress:
                self.stdout.write(f"\r{gone.runs:,} runs deleted ...", ending="")
                self.stdout.flush()

        gone = retention.prune(keep, show)
        if shows_progress and gone.runs:
            self.stdout.write("")
        self.stdout.write(
            f"Deleted {gone.runs:,} runs, {gone.nodes:,} nodes, {gone.events:,} events "
            f"and {gone.keys:,} idempotency keys."
        )
