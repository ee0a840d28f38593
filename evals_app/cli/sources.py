"""What a command is pointed at: files as they are, as they were at a git ref, or workflows in the database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evals_app.cases import Document, read_document
from evals_app.cli import CannotRun

if TYPE_CHECKING:
    from workflows_app.models import WorkflowVersion

SUFFIXES = (".yaml", ".yml")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """One document to evaluate, and the stored version it belongs to, if results are kept."""

    document: Document
    path: Path | None = None
    version: WorkflowVersion | None = None


def is_file(given: str) -> bool:
    """Whether an argument means a file: by its name, or because there is one."""
    path = Path(given)
    return path.suffix in SUFFIXES or len(path.parts) > 1 or path.is_file()


def is_suite_run(given: str) -> bool:
    """Whether a comparison names a stored suite run and no git ref."""
    return _UUID.fullmatch(given) is not None


def read_file(given: str) -> bytes:
    """A file's bytes, or a sentence about why not."""
    try:
        return Path(given).read_bytes()
    except FileNotFoundError:
        raise CannotRun(f"there is no file {given}.") from None
    except IsADirectoryError:
        raise CannotRun(
            f"{given} is a folder; give the files in it, such as {given.rstrip('/')}/*.yaml."
        ) from None
    except OSError as error:
        raise CannotRun(f"{given} cannot be read: {error.strerror}.") from None


def document_from_file(given: str) -> Document:
    """The document in a file; `InvalidDocument` with every fault."""
    return read_document(read_file(given), name=Path(given).stem, path=given)


def set_up_django() -> None:
    """Make the database available; what is only asked of files never comes here."""
    import django
    from django.apps import apps

    if not apps.ready:  # a second time would set up logging anew, under whoever called us
        django.setup()


def stored_target(given: str) -> Target:
    """A workflow by its slug."""
    from django.db import DatabaseError

    from evals_app.suites import document_of
    from workflows_app.models import Workflow

    try:
        workflow = Workflow.objects.select_related("current_version__workflow").filter(slug=given).first()
    except DatabaseError as error:
        problem = f"there is no file {given!r}, and the database cannot be asked for a workflow: {error}"
        raise CannotRun(f"{problem}. Give a file, or start `runsight up` once.") from None
    if workflow is None:
        raise CannotRun(f"there is neither a file nor a workflow {given!r}.")
    if workflow.current_version is None:
        raise CannotRun(f"the workflow {given!r} has no saved version.")
    return Target(document_of(workflow.current_version), version=workflow.current_version)


def kept_target(given: str, document: Document) -> Target:
    """A file, saved as its workflow's newest version so that its results have something to belong to."""
    from workflows_app.files import import_file

    path = Path(given)
    return Target(document, path, import_file(path, message=f"Evaluated from {path.name}"))


def document_at(path: Path, ref: str) -> Document | None:
    """A file's document as it was at a git ref; None if it was not there."""
    commit = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        raise CannotRun(f"--compare-to {ref}: git knows no such commit here.")
    text = _git(path, "show", f"{commit.decode().strip()}:./{path.name}")
    return None if text is None else read_document(text, name=path.stem, path=f"{ref}:{path}")


def _git(path: Path, *arguments: str) -> bytes | None:
    """What git answers in the file's folder; None if it refuses."""
    import subprocess

    command = ["git", "-C", str(path.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)  # noqa: S603 - no shell, arguments checked
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"git could not be asked: {error}") from None
    return done.stdout if done.returncode == 0 else None
