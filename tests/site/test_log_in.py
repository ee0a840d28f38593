"""Guessing passwords is slowed down."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from runsight_site.serving.log_in import HASHED_AT_ONCE, PatientPasswordHasher
from tests.callers import user_in
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


@pytest.mark.django_db
def test_behind_a_proxy_each_client_is_locked_by_its_own_address(settings: Any) -> None:
    settings.RUNSIGHT_TRUSTED_PROXIES = 1
    User.objects.create_user("alice", password="correct horse")
    right = {"username": "alice", "password": "correct horse"}
    for number in range(settings.AXES_FAILURE_LIMIT):
        pretended = f"10.1.1.{number}, 198.51.100.7"  # the proxy adds the last one
        Client().post("/login/", {**right, "password": "guess"}, headers={"X-Forwarded-For": pretended})
    attacker = {"X-Forwarded-For": "192.0.2.1, 198.51.100.7"}
    assert Client().post("/login/", right, headers=attacker).status_code == 429
    assert Client().post("/login/", right, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 302


@pytest.mark.django_db
def test_without_a_trusted_proxy_the_header_is_not_believed(settings: Any) -> None:
    User.objects.create_user("alice", password="correct horse")
    right = {"username": "alice", "password": "correct horse"}
    for number in range(settings.AXES_FAILURE_LIMIT):
        headers = {"X-Forwarded-For": f"10.1.1.{number}"}
        Client().post("/login/", {**right, "password": "guess"}, headers=headers)
    assert Client().post("/login/", right).status_code == 429


@pytest.mark.django_db
def test_an_address_tries_only_so_often_whatever_the_names(settings: Any) -> None:
    settings.LOG_IN_RATE = "5/minute"
    cache.clear()
    User.objects.create_user("alice", password="correct horse")
    right = {"username": "alice", "password": "correct horse"}
    for number in range(5):
        assert Client().post("/login/", {**right, "username": f"guess{number}"}).status_code == 200
    refused = Client().post("/login/", right)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "Try again in a minute" in squeezed(refused)
    assert Client().get("/login/").status_code == 200
    assert Client().post("/login/", right, REMOTE_ADDR="10.0.0.9").status_code == 302


def test_few_passwords_are_hashed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most = 0, 0

    def hash_slowly(*args: Any) -> bool:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.01)
        under_way -= 1
        return True

    monkeypatch.setattr(Argon2PasswordHasher, "verify", hash_slowly)
    monkeypatch.setattr(Argon2PasswordHasher, "encode", hash_slowly)
    hasher = PatientPasswordHasher()
    with ThreadPoolExecutor(30) as pool:
        list(pool.map(lambda _: hasher.verify("a", "b"), range(30)))
        list(pool.map(lambda _: hasher.encode("a", "b"), range(30)))
    assert most == HASHED_AT_ONCE


def test_passwords_hashed_by_django_itself_still_fit() -> None:
    encoded = Argon2PasswordHasher().encode("correct horse", "some salt here")
    assert PatientPasswordHasher().verify("correct horse", encoded)
    assert not PatientPasswordHasher().verify("wrong", encoded)


def test_the_site_hashes_with_patience() -> None:
    from runsight_site import settings as site

    assert site.PASSWORD_HASHERS[0].endswith(".PatientPasswordHasher")


@pytest.mark.django_db
def test_everybody_changes_their_own_password(client: Client) -> None:
    viewer = user_in("viewer")
    viewer.set_password("correct horse")
    viewer.save()
    client.force_login(viewer, backend="django.contrib.auth.backends.ModelBackend")
    assert 'href="/password/"' in squeezed(client.get("/"))
    new = {"new_password1": "battery staple 9", "new_password2": "battery staple 9"}
    assert "was entered incorrectly" in squeezed(client.post("/password/", {**new, "old_password": "wrong"}))
    done = client.post("/password/", {**new, "old_password": "correct horse"}, follow=True)
    assert "Your password is changed." in squeezed(done)
    viewer.refresh_from_db()
    assert viewer.check_password("battery staple 9")
