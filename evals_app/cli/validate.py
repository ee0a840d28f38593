"""`runsight validate <file…>`: every error in every file, with its line."""

from __future__ import annotations

import argparse
import sys

from evals_app.cases.document import read_document
from evals_app.cli import FAILED, PASSED, github
from evals_app.cli.sources import read_file
from workflows_app.display import formats
from workflows_app.engine.definition import Fault, InvalidDocument

DESCRIPTION = "Check workflow files. Exit code 0: valid, 1: errors found, 2: could not run."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a workflow as YAML")
    parser.add_argument("--github", action="store_true", help="also write annotations for GitHub Actions")


def main(options: argparse.Namespace) -> int:
    """Print what is wrong with each file; a terminal also gets the number of valid ones."""
    texts = {name: read_file(name) for name in options.files}
    invalid_count = 0
    for name, text in texts.items():
        try:
            read_document(text, path=name)
        except InvalidDocument as invalid:
            invalid_count += 1
            print_faults(name, invalid.faults, is_github=options.github)
    if sys.stdout.isatty():
        sys.stdout.write(f"{len(texts) - invalid_count} of {len(texts)} files are valid.\n")
    return FAILED if invalid_count else PASSED


def print_faults(name: str, faults: list[Fault], *, is_github: bool) -> None:
    """One line per error, in the form that editors and terminals make clickable."""
    for fault in faults:
        place = f"{name}:{fault.line}" if fault.line else name
        message = f"{fault.path}: {fault.message}" if fault.path else fault.message
        sys.stdout.write(formats.for_terminal(f"{place}: {message}\n"))
    if is_github:
        for line in github.of_faults(name, faults):
            sys.stdout.write(formats.for_terminal(f"{line}\n"))
