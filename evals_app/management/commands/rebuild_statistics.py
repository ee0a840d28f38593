"""`runsight rebuild_statistics`: make the statistics again from the observations."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evals_app.services.observation import rebuild_statistics
from workflows_app.models import Workflow


class Command(BaseCommand):
    """Rebuilds the statistics of some or all workflows."""

    help = "Make baselines and evidence again from the observations alone."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workflow", nargs="*", help="slugs; all workflows without any")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = options["workflow"]
        workflows = Workflow.objects.filter(slug__in=wanted) if wanted else Workflow.objects.all()
        missing = set(wanted) - {workflow.slug for workflow in workflows}
        if missing:
            raise CommandError(f"There is no workflow {', '.join(sorted(missing))}.")
        for workflow in workflows:
            self.stdout.write(f"{workflow.slug}: {rebuild_statistics(workflow)} observations")
