"""One-time log-in links: once, soon, and on this machine."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runsight_site.serving import demo, login_links

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def client() -> Client:
    return Client(SERVER_NAME="127.0.0.1")


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_link_logs_in_once(client: Client, alice: User) -> None:
    link = login_links.issue(alice)
    response = client.get(link)
    assert (response.status_code, response.headers["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(alice.pk)
    assert "no-store" in response.headers["Cache-Control"]
    second = Client(SERVER_NAME="127.0.0.1")
    assert second.get(link).headers["Location"] == "/login/"
    assert not is_logged_in(second)


REFUSED: list[dict[str, Any]] = [
    {"REMOTE_ADDR": "10.0.0.5"},
    {"REMOTE_ADDR": ""},
    {"headers": {"X-Forwarded-For": "203.0.113.9"}},
    {"headers": {"Forwarded": "for=203.0.113.9"}},
    {"headers": {"X-Real-Ip": "203.0.113.9"}},
    {"headers": {"Host": "runsight.example.com"}},
]


@pytest.mark.parametrize("request_extra", REFUSED)
def test_link_refuses_other_machines_and_stays_good(
    client: Client, alice: User, settings: Any, request_extra: dict[str, Any]
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    link = login_links.issue(alice)
    client.get(link, **request_extra)
    assert not is_logged_in(client)
    client.get(link, headers={"Host": "[::1]:8000"}, REMOTE_ADDR="::1")
    assert is_logged_in(client)


def test_link_is_too_old_after_ten_minutes(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = login_links.issue(alice)
    now = time.time()
    monkeypatch.setattr(login_links.time, "time", lambda: now + 601)
    client.get(link)
    assert not is_logged_in(client)


@pytest.mark.parametrize("token", ["unknown", "..%2Fsecret_key"])
def test_invented_token_is_refused(client: Client, token: str) -> None:
    assert client.get(f"/login/once/{token}/").status_code in (302, 404)
    assert not is_logged_in(client)


def test_link_of_a_blocked_user_is_refused(client: Client, alice: User) -> None:
    link = login_links.issue(alice)
    User.objects.update(is_active=False)
    client.get(link)
    assert not is_logged_in(client)


def test_head_does_not_use_the_link_up(client: Client, alice: User) -> None:
    link = login_links.issue(alice)
    assert client.head(link).status_code == 405
    client.get(link)
    assert is_logged_in(client)


def test_token_is_not_written_to_the_data_folder(alice: User, settings: Any) -> None:
    token = login_links.issue(alice).split("/")[-2].encode()
    files = [path for path in settings.RUNSIGHT_HOME.rglob("*") if path.is_file()]
    assert not any(token in path.read_bytes() for path in files)


def test_link_lands_where_the_demo_says(client: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.content, "landing_path", lambda: "/workflows/release-notes/")
    assert client.get(login_links.issue(alice)).headers["Location"] == "/workflows/release-notes/"
