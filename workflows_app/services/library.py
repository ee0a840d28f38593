"""Saving workflows, souls, provider keys and API tokens, each change kept in the audit log."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from workflows_app import clock
from workflows_app.documents.compile import valid_document
from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.models import (
    ApiToken,
    AuditEntry,
    Provider,
    Run,
    Soul,
    SoulVersion,
    Workflow,
    WorkflowVersion,
)
from workflows_app.security import access, credentials
from workflows_app.services.runs import Refused, cancel_run

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
def save_as(
    user: AbstractBaseUser, slug: str, yaml: str, *, token: ApiToken | None = None, **options: Any
) -> WorkflowVersion:
    """Save a text if this user may: raises InvalidDocument first, then PermissionDenied, then `Stale`."""
    definition = valid_document(yaml, slug)
    access.check_save(user, definition, token)
    return save_version(slug, yaml, definition=definition, author=user, **options)


@transaction.atomic
def save_version(
    slug: str,
    yaml: str,
    *,
    definition: WorkflowDefinition | None = None,
    author: AbstractBaseUser | None = None,
    message: str = "",
    enabled: bool | None = None,
    based_on: int | None = None,
    is_demo: bool = False,
) -> WorkflowVersion:
    """Save a text as the workflow's newest version, or do nothing if it is the current one already.

    `definition` is what the text compiled to, from a caller that had to look at it. `enabled` of a new workflow is
    what its text says, unless the caller says otherwise. `based_on` is the version number the author started from
    (0 for none); a newer one raises `Stale`.
    """
    definition = definition or valid_document(yaml, slug)
    rows = Workflow.objects.select_for_update(of=("self",)).select_related("current_version")
    workflow = rows.filter(slug=slug).first()
    current = workflow.current_version if workflow else None
    if based_on is not None and based_on != (current.number if current else 0):
        raise Stale(current)
    if workflow is None:
        workflow = Workflow(slug=slug, is_demo=is_demo, enabled=definition.enabled)
    workflow.name = definition.name or slug
    if enabled is not None:
        workflow.enabled = enabled
    workflow.save()
    if current is not None and current.sha256 == hashlib.sha256(yaml.encode()).hexdigest():
        current.definition = definition
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
    version.definition = definition
    workflow.current_version = version
    workflow.save(update_fields=["current_version", "updated_at"])
    audit(author, "workflow.save", slug, version=number, message=message)
    return version


@transaction.atomic
def cancel_as(user: AbstractBaseUser, run: Run) -> Run:
    """Stop a run and its children for somebody."""
    cancelled = cancel_run(run)
    audit(user, "run.cancel", cancelled)
    return cancelled


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
    soul.clean()
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


@transaction.atomic
def make_token(
    user: AbstractBaseUser,
    name: str,
    *,
    role: str = "",
    lifetime: timedelta | None = None,
    author: AbstractBaseUser | None = None,
) -> tuple[ApiToken, str]:
    """A new token of a user and its key, which is shown once and kept only as a hash."""
    key = access.TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=name,
        digest=access.digest_of(key),
        prefix=key[:8],
        role=role,
        expires_at=timezone.now() + lifetime if lifetime else None,
    )
    expires = token.expires_at.isoformat(timespec="seconds") if token.expires_at else None
    audit(author, "token.make", token, role=role, expires_at=expires)
    return token, key


@transaction.atomic
def revoke_token(token: ApiToken, *, author: AbstractBaseUser | None = None) -> bool:
    """Make a token useless at once; False if it was already."""
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    if revoked:
        audit(author, "token.revoke", token)
    return bool(revoked)
