"""Saving workflows, souls and provider keys."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.db import transaction

from workflows_app import clock, credentials
from workflows_app.documents import check_document_for
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import AuditEntry, Provider, Soul, SoulVersion, Workflow, WorkflowVersion
from workflows_app.services.runs import Refused

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class Stale(Refused):
    """Somebody else saved in between; `current` is what is there now."""

    def __init__(self, current: WorkflowVersion | None) -> None:
        number = current.number if current else 0
        super().__init__("stale", f"Version {number} was saved meanwhile; compare with it and save again.")
        self.current = current


def audit(user: AbstractBaseUser | None, action: str, target: Any, **detail: Any) -> None:
    """Keep who did what to which thing."""
    AuditEntry.objects.create(
        user_id=user.pk if user else None, action=action, target=str(target), detail=detail
    )


@transaction.atomic
def save_version(
    slug: str,
    yaml: str,
    *,
    author: AbstractBaseUser | None = None,
    message: str = "",
    enabled: bool | None = None,
    based_on: int | None = None,
    is_demo: bool = False,
) -> WorkflowVersion:
    """Save a text as the workflow's newest version, or do nothing if it is the current one already.

    `based_on` is the version number the author started from (0 for none); a newer one raises `Stale`.
    """
    definition, faults = check_document_for(slug, yaml)
    if definition is None or faults:
        raise InvalidDocument(faults)
    rows = Workflow.objects.select_for_update(of=("self",)).select_related("current_version")
    workflow = rows.filter(slug=slug).first()
    current = workflow.current_version if workflow else None
    if based_on is not None and based_on != (current.number if current else 0):
        raise Stale(current)
    if workflow is None:
        workflow = Workflow(slug=slug, is_demo=is_demo)
    workflow.name = definition.name or slug
    if enabled is not None:
        workflow.enabled = enabled
    workflow.save()
    if current is not None and current.sha256 == hashlib.sha256(yaml.encode()).hexdigest():
        return current
    number = (workflow.versions.order_by("-number").values_list("number", flat=True).first() or 0) + 1
    version = WorkflowVersion.objects.create(
        workflow=workflow,
        number=number,
        yaml=yaml,
        author_id=author.pk if author else None,
        message=message,
        created_at=clock.now(),
    )
    workflow.current_version = version
    workflow.save(update_fields=["current_version", "updated_at"])
    audit(author, "workflow.save", slug, version=number, message=message)
    return version


@transaction.atomic
def set_enabled(workflow: Workflow, enabled: bool, *, author: AbstractBaseUser | None = None) -> None:
    """Take a workflow into use or out of it; its text stays as it is."""
    if workflow.enabled != enabled:
        workflow.enabled = enabled
        workflow.save(update_fields=["enabled", "updated_at"])
        audit(author, "workflow.enable" if enabled else "workflow.disable", workflow.slug)


@transaction.atomic
def save_soul(soul: Soul, *, author: AbstractBaseUser | None = None) -> Soul:
    """Save a soul and, where its identity changed, a new version of it."""
    soul.version = soul.definition.version
    soul.save()
    _, is_new = SoulVersion.objects.get_or_create(
        soul=soul,
        version=soul.version,
        defaults={"definition": asdict(soul.definition), "author_id": author.pk if author else None},
    )
    if is_new:
        audit(author, "soul.save", soul.slug, version=soul.version)
    return soul


@transaction.atomic
def save_provider_key(provider: Provider, key: str, *, author: AbstractBaseUser | None = None) -> None:
    """Keep a provider's key encrypted; an empty one removes it."""
    provider.encrypted_key = credentials.encrypt_key(key) if key else ""
    provider.save()
    audit(author, "provider.key", provider.name, removed=not key)
    transaction.on_commit(credentials.forget)
