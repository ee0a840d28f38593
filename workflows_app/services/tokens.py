"""Making and revoking API tokens, each kept in the audit log."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from workflows_app import access
from workflows_app.models import ApiToken
from workflows_app.services.library import audit

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@transaction.atomic
def make_token(
    user: AbstractBaseUser,
    name: str,
    *,
    role: str = "",
    lifetime: timedelta | None = None,
    author: AbstractBaseUser | None = None,
) -> tuple[ApiToken, str]:
    """A new token of a user and its key, which is shown once."""
    token, key = access.make_token(user, name, role=role, lifetime=lifetime)
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
