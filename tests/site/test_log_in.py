"""Guessing passwords is slowed down."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.html import squeezed


@pytest.mark.django_db
def test_guessing_a_password_locks_that_name_from_that_address_for_a_while(settings: Any) -> None:
    User.objects.create_user("alice", password="correct horse")
    User.objects.create_user("bob", password="correct horse")
    client = Client()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post("/login/", {"username": "alice", "password": "guess"})
    locked = client.post("/login/", {"username": "alice", "password": "correct horse"})
    assert locked.status_code == 429
    assert "locked here for 15 minutes" in squeezed(locked)
    assert "<title>Too many attempts · Runsight</title>" in squeezed(locked)
    assert client.post("/login/", {"username": "bob", "password": "correct horse"}).status_code == 302
    elsewhere = client.post(
        "/login/", {"username": "alice", "password": "correct horse"}, REMOTE_ADDR="10.0.0.9"
    )
    assert elsewhere.status_code == 302
