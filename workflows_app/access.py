"""Who may do what: the roles, their permissions, and the tokens that stand for a user. The one place that decides."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.apps import apps as installed
from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.models import ApiToken

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

TOKEN_PREFIX = "rs_"  # noqa: S105 - says what it is, opens nothing
USE_NOTED_EVERY = timedelta(minutes=1)

VIEWER = frozenset(
    f"{app}.view_{model}"
    for app, models in {
        "workflows_app": ("workflow", "workflowversion", "soul", "soulversion", "run", "runnode", "runevent"),
        "evals_app": (
            "observation",
            "blockstatistics",
            "pinnedbaseline",
            "regression",
            "evalsuiterun",
            "evalcaseresult",
        ),
    }.items()
    for model in models
)
OPERATOR = VIEWER | {"workflows_app.start_run", "workflows_app.cancel_run", "evals_app.handle_regression"}
EDITOR = OPERATOR | {
    "workflows_app.add_workflow",
    "workflows_app.change_workflow",
    "workflows_app.add_soul",
    "workflows_app.change_soul",
    "workflows_app.pin_baseline",
}
ADMIN = EDITOR | {
    "workflows_app.save_code",
    "workflows_app.delete_workflow",
    "workflows_app.delete_soul",
    "workflows_app.view_provider",
    "workflows_app.add_provider",
    "workflows_app.change_provider",
    "workflows_app.delete_provider",
    "workflows_app.view_priceoverride",
    "workflows_app.add_priceoverride",
    "workflows_app.change_priceoverride",
    "workflows_app.delete_priceoverride",
    "workflows_app.view_auditentry",
    "workflows_app.view_apitoken",
    "workflows_app.add_apitoken",
    "workflows_app.change_apitoken",
    "workflows_app.delete_apitoken",
    "auth.view_user",
    "auth.add_user",
    "auth.change_user",
    "auth.view_group",
}
ROLES: dict[str, frozenset[str]] = {"viewer": VIEWER, "operator": OPERATOR, "editor": EDITOR, "admin": ADMIN}

SEE = "workflows_app.view_run"
SAVE_CODE = "workflows_app.save_code"


def may(user: AbstractBaseUser | AnonymousUser, permission: str, token: ApiToken | None = None) -> bool:
    """Whether a user, through a token if there is one, holds a permission such as `workflows_app.start_run`."""
    if not user.is_active or not getattr(user, "has_perm", lambda _: False)(permission):
        return False
    return token is None or not token.role or permission in ROLES[token.role]


def may_enter_admin(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Staff, and whoever may edit workflows: that is where they are edited."""
    return user.is_active and (getattr(user, "is_staff", False) or may(user, "workflows_app.change_workflow"))


def check(user: AbstractBaseUser | AnonymousUser, permission: str, token: ApiToken | None = None) -> None:
    """Raise PermissionDenied, naming the permission, unless the user holds it."""
    if not may(user, permission, token):
        raise PermissionDenied(f"This needs the permission {permission}{_granted_by(permission)}.")


def check_save(
    user: AbstractBaseUser | AnonymousUser,
    definition: WorkflowDefinition | None,
    token: ApiToken | None = None,
) -> None:
    """A document with code blocks is saved only by those who may: its code runs on our machines."""
    if definition is not None and definition.has_code and not may(user, SAVE_CODE, token):
        raise PermissionDenied(
            f"This document has code blocks; saving it needs the permission {SAVE_CODE}{_granted_by(SAVE_CODE)}."
        )


def _granted_by(permission: str) -> str:
    role = next((name for name, granted in ROLES.items() if permission in granted), None)
    return f", which the role {role} has" if role else ""


def requires(permission: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a page: those without the permission see the 403 page."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(view):

            @wraps(view)
            async def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
                await sync_to_async(lambda: check(request.user, permission))()
                return await view(request, *args, **kwargs)
        else:

            @wraps(view)
            def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
                check(request.user, permission)
                return view(request, *args, **kwargs)

        return guarded

    return decorate


def grant_roles(apps: Apps = installed, **_: Any) -> None:
    """Give each role's group exactly its permissions; runs after every migrate, so a new permission arrives."""
    try:
        groups, permissions = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    except LookupError:  # migrated back to before there were any
        return
    rows = permissions.objects.values_list("content_type__app_label", "codename", "pk")
    found = {f"{app}.{codename}": pk for app, codename, pk in rows}
    for role, names in ROLES.items():
        group = groups.objects.get_or_create(name=role)[0]
        group.permissions.set(found[name] for name in names if name in found)


def make_token(
    user: AbstractBaseUser, name: str, *, role: str = "", lifetime: timedelta | None = None
) -> tuple[ApiToken, str]:
    """A new token and its key, which is shown once and kept only as a hash."""
    key = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=name,
        digest=_digest(key),
        prefix=key[:8],
        role=role,
        expires_at=timezone.now() + lifetime if lifetime else None,
    )
    return token, key


def usable_token(key: str) -> ApiToken | None:
    """The token with this key, unless it is revoked, expired or its user switched off."""
    token = ApiToken.objects.select_related("user").filter(digest=_digest(key), revoked_at=None).first()
    if token is None or not token.user.is_active:
        return None
    return None if token.expires_at and token.expires_at <= timezone.now() else token


def token_for(key: str) -> ApiToken | None:
    """The usable token with this key; notes its use."""
    token, now = usable_token(key), timezone.now()
    if token is not None and (token.last_used_at is None or now - token.last_used_at > USE_NOTED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def session_user(key: str) -> AbstractBaseUser | None:
    """Whose session this is now: nobody's once it ended, the password changed or the user was switched off."""
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    path = session.get(BACKEND_SESSION_KEY)
    if path not in settings.AUTHENTICATION_BACKENDS:
        return None
    user: AbstractBaseUser | None = load_backend(path).get_user(session[SESSION_KEY])  # None if not active
    if user is None:
        return None
    # As django.contrib.auth.get_user does, but without its writes: a socket cannot set a new cookie.
    known = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    given = session.get(HASH_SESSION_KEY, "")
    return user if any(constant_time_compare(given, one) for one in known) else None


def _digest(key: str) -> str:
    # A random 256-bit key needs no slow hash: there is nothing to guess.
    return hashlib.sha256(key.encode()).hexdigest()
