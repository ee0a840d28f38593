"""Who calls the API in tests: a user of a role, by token or by session."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from workflows_app import services
from workflows_app.security import credentials


def user_in(role: str) -> User:
    """The user of a role; made once."""
    user, is_new = User.objects.get_or_create(username=role, defaults={"is_staff": role == "admin"})
    if is_new:
        user.groups.add(Group.objects.get(name=role))
    return user


def caller(role: str = "admin", *, limited_to: str = "") -> APIClient:
    """A client with a token of that role's user, limited to another role if asked."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=authorization(role, limited_to=limited_to))
    return client


def authorization(role: str = "admin", *, limited_to: str = "") -> str:
    """The header of a fresh token of that role's user."""
    user = user_in(role)
    _, key = services.make_token(user, f"test {user.api_tokens.count()}", role=limited_to)
    return f"Token {key}"


def queries_of(client: Any, path: str, form: dict[str, str] | None = None) -> int:
    """How many queries a GET takes, or a POST of this form, once what is kept in memory has been read."""
    credentials.forget()  # read again by the first call, and not for a while after it
    call = partial(client.post, path, form) if form else partial(client.get, path)
    call()
    with CaptureQueriesContext(connection) as captured:
        response = call()
    assert response.status_code == 200, response.content
    return len(captured)
