"""Workflows as files: the slug of a file, and folders that round-trip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.models import Workflow, WorkflowVersion
from workflows_app.services import save_version

SUFFIXES = (".yaml", ".yml")


def slug_of(path: Path, text: str) -> str:
    """The `id` a document gives itself, else the name of its file."""
    named = re.search(r"^id:\s*[\"']?([a-z0-9_-]+)[\"']?\s*$", text, re.MULTILINE)
    slug = named.group(1) if named else path.stem.lower()
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", slug):
        raise InvalidDocument(
            [
                Fault(
                    "id",
                    None,
                    f"{path.name} cannot be a slug; rename it to a-z, 0-9 and dashes, or give an `id`.",
                )
            ]
        )
    return slug


def read_workflow(path: Path) -> tuple[str, str]:
    """A file's slug and text."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument([Fault("", None, f"{path.name} is not UTF-8 text.")]) from None
    return slug_of(path, text), text


def import_file(path: Path, message: str = "") -> WorkflowVersion:
    """Save a file as its workflow's newest version; an unchanged one makes none."""
    slug, text = read_workflow(path)
    return save_version(slug, text, message=message or f"Imported from {path.name}")


def workflow_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)


def export_all(folder: Path) -> Iterator[Path]:
    """Write each workflow's current version to `<slug>.yaml`, byte for byte as it was saved."""
    folder.mkdir(parents=True, exist_ok=True)
    for workflow in Workflow.objects.select_related("current_version").exclude(current_version=None):
        path = folder / f"{workflow.slug}.yaml"
        assert workflow.current_version is not None
        path.write_bytes(workflow.current_version.yaml.encode())
        yield path
