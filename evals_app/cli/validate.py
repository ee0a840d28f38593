"""`runsight validate <file…>`: every fault of every file, with its line."""

from __future__ import annotations

import argparse
import sys

from evals_app.cases import read_document
from evals_app.cli import FAILED, PASSED, github
from evals_app.cli.sources import read_file
from workflows_app.engine.definition import Fault, InvalidDocument

DESCRIPTION = "Check workflow files. Exit code 0: valid, 1: faults found, 2: could not run."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a workflow as YAML")
    parser.add_argument("--github", action="store_true", help="also write annotations for GitHub Actions")


def main(arguments: list[str]) -> int:
    """Check the files given on the command line."""
    parser = argparse.ArgumentParser("runsight validate", description=DESCRIPTION)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    return validate(options.files, is_github=options.github)


def validate(files: list[str], *, is_github: bool = False) -> int:
    """Say what is wrong with each file; of a valid one nothing, unless somebody looks."""
    texts = {given: read_file(given) for given in files}
    faulty = 0
    for given, text in texts.items():
        try:
            read_document(text, path=given)
        except InvalidDocument as invalid:
            faulty += 1
            tell_faults(given, invalid.faults, is_github=is_github)
    if sys.stdout.isatty():
        sys.stdout.write(f"{len(texts) - faulty} of {len(texts)} files are valid.\n")
    return FAILED if faulty else PASSED


def tell_faults(given: str, faults: list[Fault], *, is_github: bool) -> None:
    """One line per fault, as editors and terminals make clickable."""
    for fault in faults:
        place = f"{given}:{fault.line}" if fault.line else given
        told = f"{fault.path}: {fault.message}" if fault.path else fault.message
        sys.stdout.write(f"{place}: {told}\n")
    if is_github:
        for line in github.of_faults(given, faults):
            sys.stdout.write(f"{line}\n")
