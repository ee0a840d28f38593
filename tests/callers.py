"""Who calls the API in tests: a user of a role, by token or by session."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from workflows_app import access


def user_in(role: str) -> User:
    """The user of a role; made once."""
    user, is_new = User.objects.get_or_create(username=role, defaults={"is_staff": role == "admin"})
    if is_new:
        user.groups.add(Group.objects.get(name=role))
    return user


def caller(role: str = "admin", *, limited_to: str = "") -> APIClient:
    """A client with a token of that role's user, limited to another role if asked."""
    user = user_in(role)
    _, key = access.make_token(user, f"test {user.api_tokens.count()}", role=limited_to)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {key}")
    return client


def queries_of(client: Any, path: str) -> int:
    """How many queries a GET takes, once the token's use was noted."""
    client.get(path)
    with CaptureQueriesContext(connection) as captured:
        response = client.get(path)
    assert response.status_code == 200, response.content
    return len(captured)
