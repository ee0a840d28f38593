"""Workflows as files: the slug of a file, and folders that round-trip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.engine.slugs import slug_from
from workflows_app.models import Workflow, WorkflowVersion
from workflows_app.services import save_version


def _slug_of(path: Path, text: str) -> str:
    """The document's `id`, else the file's name if a workflow has exactly that slug, else a slug made from the name."""
    if named := re.search(r"^id:\s*[\"']?([\w-]+)[\"']?\s*(?:#.*)?$", text, re.MULTILINE):
        return named.group(1)
    if Workflow.objects.filter(slug=path.stem).exists():
        return path.stem
    return slug_from(path.stem) or path.stem


def import_file(path: Path, message: str = "") -> WorkflowVersion:
    """Save a file as its workflow's newest version; an unchanged one makes none."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument([Fault("", None, f"{path.name} is not UTF-8 text.")]) from None
    return save_version(_slug_of(path, text), text, message=message or f"Imported from {path.name}")


def export_all(folder: Path) -> Iterator[Path]:
    """Write each workflow's current version to `<slug>.yaml`, byte for byte as it was saved."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = Workflow.objects.exclude(current_version=None).values_list("slug", "current_version__yaml")
    for slug, text in rows:
        path = folder / f"{slug}.yaml"
        path.write_bytes(text.encode())
        yield path
