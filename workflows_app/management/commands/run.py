"""`runsight run <slug|file.yaml>`: run a workflow and say how it went."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from workflows_app import executors, services
from workflows_app.display import formats
from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.json_text import storable_json
from workflows_app.engine.parse import SUFFIXES
from workflows_app.models import EventName, Run, RunStatus, Source, Workflow
from workflows_app.services.files import import_file

PASSED, FAILED, COULD_NOT_RUN, INTERRUPTED = 0, 1, 2, 130
LOOK_SECONDS = 0.1


class Command(BaseCommand):
    """Starts a run in this process and waits for its end."""

    help = "Run a workflow, by its slug or from a YAML file, and wait for its end."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workflow", help="a slug, or a path to a YAML file")
        parser.add_argument(
            "--input", action="append", default=[], metavar="K=V", help="an input; V may be JSON"
        )
        parser.add_argument("--watch", action="store_true", help="print each event as it happens")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workflow = self._workflow(options["workflow"])
            run = services.start_run(workflow, _inputs(workflow, options["input"]), source=Source.MANUAL)
        except InvalidDocument as invalid:
            for fault in invalid.faults:
                self.stderr.write(str(fault))
            sys.exit(COULD_NOT_RUN)
        except services.Refused as refused:
            raise CommandError(refused.message, returncode=COULD_NOT_RUN) from None
        worker = threading.Thread(target=_execute, args=(run,), daemon=True)
        if settings.RUNSIGHT_EXECUTOR == "local":
            worker.start()
        try:
            self._follow(run, loudly=options["watch"] or self.stdout.isatty())
        except KeyboardInterrupt:
            executors.service().interrupt()  # else this process would not end before the last child run does
            if worker.is_alive():
                worker.join()
            message = f"Interrupted. {run} is not cancelled: a server or worker goes on with it."
            raise CommandError(message, returncode=INTERRUPTED) from None
        run.refresh_from_db()
        self._summarize(run)
        sys.exit(PASSED if run.status == RunStatus.COMPLETED and run.eval_passed is not False else FAILED)

    def _workflow(self, name: str) -> Workflow:
        path = Path(name)
        if path.suffix in SUFFIXES:
            if not path.is_file():
                raise CommandError(f"There is no file {name}.", returncode=COULD_NOT_RUN)
            return import_file(path).workflow
        workflow = Workflow.objects.select_related("current_version__workflow").filter(slug=name).first()
        if workflow is None:
            raise CommandError(
                f"There is no workflow {name!r}; see `runsight export_workflows`.", returncode=COULD_NOT_RUN
            )
        return workflow

    def _follow(self, run: Run, *, loudly: bool) -> None:
        """Read the run's events as they come, until it is over."""
        seen = 0
        while True:
            # Asked first, so that no event after it is missed.
            is_over = Run.objects.get(pk=run.pk).is_terminal
            for event in run.events.filter(seq__gt=seen):
                seen = event.seq
                if loudly:
                    self.stdout.write(formats.for_terminal(_line(event.event, event.data)))
            if is_over:
                return
            time.sleep(LOOK_SECONDS)

    def _summarize(self, run: Run) -> None:
        verdict = {True: "passed", False: "failed", None: "no assertions"}[run.eval_passed]
        score = f", score {run.eval_score:.2f}" if run.eval_score is not None else ""
        self.stdout.write(f"{run}: {run.status}, {verdict}{score}, {run.duration_ms or 0:.0f} ms")
        if run.error:
            self.stderr.write(formats.for_terminal(formats.failure(run.error)))
        for node in run.nodes.filter(details__has_key="warnings").order_by("pk"):
            for warning in node.warnings:
                self.stderr.write(formats.for_terminal(f"  {node.node_id}: {warning}"))
        for node in run.nodes.filter(eval_passed=False):
            for one in (node.eval_results or {}).get("assertions", []):
                if not one["passed"]:
                    line = f"  {node.node_id}: {one['type']}: {one['reason']}"
                    self.stdout.write(formats.for_terminal(line))
        if run.outputs and self.stdout.isatty():
            self.stdout.write(formats.for_terminal(json.dumps(run.outputs, ensure_ascii=False, indent=2)))


def _execute(run: Run) -> None:
    try:
        executors.service().execute(run.pk)
    finally:
        connection.close()


def _inputs(workflow: Workflow, pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be read as such and the workflow does not ask for a text."""
    version = workflow.current_version
    declared = (version.definition.inputs if version else None) or ()
    texts = {field.name for field in declared if field.type == "string"}
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"--input {pair!r} is not valid; use NAME=VALUE.", returncode=COULD_NOT_RUN)
        values[name] = value
        if name not in texts:
            with suppress(ValueError):
                values[name] = storable_json(value)
    return values


def _line(event: str, data: dict[str, Any]) -> str:
    node = data.get("node_id", "")
    if event == EventName.NODE_EVAL_COMPLETE:
        return f"{'✓' if data['passed'] else '✗'} {node} scored {formats.score(data['eval_score'])}"
    if event == EventName.NODE_FAILED:
        return f"! {node} {formats.failure(data['error'])}"
    return f"· {event.replace('_', ' ')} {node}".rstrip()
