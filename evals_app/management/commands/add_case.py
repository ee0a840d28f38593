"""`runsight add_case <run> --node extract`: make an eval case from a run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from evals_app.suites.case_maker import propose_case, save_case
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import Run, RunNode
from workflows_app.services import Refused

COULD_NOT_RUN = 2


class Command(BaseCommand):
    """Shows the diff, asks, and saves a new version or changes a file."""

    help = "Make an eval case of a run node: its inputs, the outputs before it, the assertions it passed."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", help="a run's id, or its workflow and number: invoice-extraction#42")
        parser.add_argument("--node", required=True, metavar="BLOCK", help="the block the case is about")
        parser.add_argument(
            "--iteration", type=int, metavar="N", help="which execution of it; the last without"
        )
        parser.add_argument("--file", metavar="F", help="add the case to this file instead of a new version")
        parser.add_argument("--id", dest="case_id", metavar="ID", help="the case's name")
        parser.add_argument("--freeze-output", action="store_true", help="freeze the block's own output, too")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(options["file"]) if options["file"] else None
        try:
            text = file.read_bytes().decode("utf-8") if file else None
            proposal = propose_case(
                _node(options["run"], options["node"], options["iteration"]),
                text=text,
                case_id=options["case_id"],
                freeze_output=options["freeze_output"],
            )
            self.stdout.write(proposal.diff, ending="")
            for note in proposal.notes:
                self.stderr.write(f"Note: {note}")
            if not options["yes"] and not self._agrees():
                return
            if file is not None:
                file.write_bytes(proposal.yaml_text_new.encode())
            place = file or save_case(proposal)
            self.stderr.write(f"{place} has the case {proposal.case_id}.")
        except InvalidDocument as invalid:
            raise CommandError("\n".join(map(str, invalid.faults)), returncode=COULD_NOT_RUN) from None
        except Refused as refused:
            raise CommandError(refused.message, returncode=COULD_NOT_RUN) from None
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file}: {error}", returncode=COULD_NOT_RUN) from None

    def _agrees(self) -> bool:
        if not sys.stdin.isatty():
            self.stderr.write("Nothing was saved; use --yes to save it.")
            return False
        return input("Save it? [y/N] ").strip().lower() in ("y", "yes")


def _node(name: str, block_id: str, iteration: int | None) -> RunNode:
    """The last completed execution of a block in a run."""
    runs = Run.objects.select_related("workflow__current_version", "version__workflow")
    slug, separator, number = name.rpartition("#")
    if separator and number.isdecimal():
        run = runs.filter(workflow__slug=slug, number=int(number)).first()
    else:
        try:
            run = runs.filter(pk=name).first()
        except ValidationError:  # not a UUID
            run = None
    if run is None:
        raise Refused("not_found", f"There is no run {name!r}; give its id, or workflow#number.")
    nodes = run.nodes.filter(node_id=block_id).order_by("iteration", "attempt")
    node = (nodes.filter(iteration=iteration) if iteration else nodes).last()
    if node is None:
        known = ", ".join(sorted(set(run.nodes.values_list("node_id", flat=True)))) or "none"
        raise Refused("not_found", f"{run} has no node {block_id!r}; it has {known}.")
    node.run = run
    return node
