"""What a command reads: files as they are, files at a git ref, or workflows in the database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evals_app.cases.document import Document, read_document
from evals_app.cli import CannotRun
from workflows_app.engine.parse import SUFFIXES

if TYPE_CHECKING:
    from evals_app.cases.environment import CaseEnvironment
    from workflows_app.models import WorkflowVersion

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """One document to evaluate, and the stored version it belongs to, if results are kept."""

    document: Document
    version: WorkflowVersion | None = None


def is_file(argument: str) -> bool:
    """Whether an argument means a file: by its name, or because there is one."""
    path = Path(argument)
    return path.suffix in SUFFIXES or len(path.parts) > 1 or path.is_file()


def is_suite_run(argument: str) -> bool:
    """Whether a comparison names a stored suite run and no git ref."""
    return _UUID.fullmatch(argument) is not None


def read_file(argument: str) -> bytes:
    """A file's bytes, or CannotRun with the reason."""
    try:
        return Path(argument).read_bytes()
    except FileNotFoundError:
        raise CannotRun(f"there is no file {argument}.") from None
    except IsADirectoryError:
        raise CannotRun(
            f"{argument} is a folder; give the files in it, such as {argument.rstrip('/')}/*.yaml."
        ) from None
    except OSError as error:
        raise CannotRun(f"{argument} cannot be read: {error.strerror}.") from None


def set_up_django() -> None:
    """Make the database available; commands that only read files do without."""
    import django
    from django.apps import apps

    if not apps.ready:  # a second time would set up logging again
        django.setup()


def stored_target(argument: str) -> Target:
    """A workflow by its slug."""
    from django.db import DatabaseError

    from evals_app.suites.running import document_of
    from workflows_app.models import Workflow

    try:
        workflow = Workflow.objects.select_related("current_version__workflow").filter(slug=argument).first()
    except DatabaseError as error:
        problem = f"there is no file {argument!r}, and the database cannot be read: {error}"
        raise CannotRun(f"{problem}. Give a file, or start `runsight up` once.") from None
    if workflow is None:
        raise CannotRun(f"there is neither a file nor a workflow {argument!r}.")
    if workflow.current_version is None:
        raise CannotRun(f"the workflow {argument!r} has no saved version.")
    return Target(document_of(workflow.current_version), workflow.current_version)


def saved_version(path: Path) -> WorkflowVersion:
    """A file saved as its workflow's newest version, to which its results belong."""
    from workflows_app.services.files import import_file

    return import_file(path, message=f"Evaluated from {path.name}")


def environment_beside(path: Path) -> CaseEnvironment:
    """The environment of a file's cases: other workflows are the files beside it."""
    from evals_app.cases.environment import CaseEnvironment, workflows_beside

    return CaseEnvironment(find_workflow=workflows_beside(path))


def document_at(path: Path, ref: str) -> Document | None:
    """A file's document as it was at a git ref; None if it was not there."""
    commit = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        raise CannotRun(f"--compare-to {ref}: git knows no such commit here.")
    text = _git(path, "show", f"{commit.decode().strip()}:./{path.name}")
    return None if text is None else read_document(text, name=path.stem, path=f"{ref}:{path}")


def _git(path: Path, *arguments: str) -> bytes | None:
    """The output of git in the file's folder; None if it fails."""
    import subprocess

    command = ["git", "-C", str(path.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)  # noqa: S603 - no shell, arguments checked
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"git could not be run: {error}") from None
    return done.stdout if done.returncode == 0 else None
