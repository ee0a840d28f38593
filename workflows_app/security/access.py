"""Who may do what: the roles, their permissions, and the tokens that stand for a user. The one place that decides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods

from workflows_app.engine.definition import WorkflowDefinition
from workflows_app.models import ApiToken

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

SEE_WORKFLOWS = "workflows_app.view_workflow"
START_RUN = "workflows_app.start_run"
TOKEN_PREFIX = "rs_"  # noqa: S105 - how every token begins
USE_NOTED_EVERY = timedelta(minutes=1)


def _permissions(app: str, actions: str, models: str) -> frozenset[str]:
    return frozenset(f"{app}.{action}_{model}" for action in actions.split() for model in models.split())


VIEWER = _permissions(
    "workflows_app", "view", "workflow workflowversion soul soulversion run runnode runevent"
) | _permissions(
    "evals_app", "view", "observation blockstatistics pinnedbaseline regression evalsuiterun evalcaseresult"
)
OPERATOR = VIEWER | {START_RUN, "workflows_app.cancel_run", "evals_app.handle_regression"}
EDITOR = (
    OPERATOR | _permissions("workflows_app", "add change", "workflow soul") | {"workflows_app.pin_baseline"}
)
ADMIN = (
    EDITOR
    | {"workflows_app.save_code", "workflows_app.view_auditentry"}
    | _permissions("workflows_app", "delete", "workflow soul")
    | _permissions("workflows_app", "view add change delete", "provider priceoverride apitoken")
    | _permissions("auth", "view add change", "user")
    | _permissions("auth", "view", "group")
)
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


def check(
    user: AbstractBaseUser | AnonymousUser, permission: str, token: ApiToken | None = None, what: str = "This"
) -> None:
    """Raise PermissionDenied, naming the permission and who has it, unless the user holds it."""
    if not may(user, permission, token):
        role = next((name for name, granted in ROLES.items() if permission in granted), None)
        granted_by = f", which the role {role} has" if role else ""
        raise PermissionDenied(f"{what} needs the permission {permission}{granted_by}.")


def check_save(
    user: AbstractBaseUser | AnonymousUser,
    definition: WorkflowDefinition | None,
    token: ApiToken | None = None,
) -> None:
    """A document with code blocks is saved only by those who may: its code runs on our machines."""
    if definition is not None and definition.has_code:
        check(user, SAVE_CODE, token, "This document has code blocks; saving it")


def requires(permission: str, *methods: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a page: those without the permission see the 403 page. It only reads, unless methods are named."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @require_http_methods(methods or ["GET", "HEAD"])
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


def usable_token(key: str) -> ApiToken | None:
    """The token with this key, unless it is revoked, expired or its user switched off."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(key), revoked_at=None).first()
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
    session_hash = session.get(HASH_SESSION_KEY, "")
    return user if any(constant_time_compare(session_hash, one) for one in known) else None


def digest_of(key: str) -> str:
    """What is stored of a token's key."""
    # A random 256-bit key needs no slow hash: there is nothing to guess.
    return hashlib.sha256(key.encode()).hexdigest()
