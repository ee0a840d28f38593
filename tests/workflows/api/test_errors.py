"""Every refusal has one shape; who calls, and how often."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests.callers import caller, user_in
from workflows_app import services
from workflows_app.models import ApiToken

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-4000-8000-000000000000"

# method, path, body, status, code
REFUSALS: list[tuple[str, str, Any, int, str]] = [
    ("GET", f"/api/runs/{NOBODY}/", None, 404, "not_found"),
    ("GET", "/api/runs/no-uuid/", None, 404, "not_found"),
    ("GET", "/api/runs", None, 404, "not_found"),
    ("GET", "/api/nothing/here/", None, 404, "not_found"),
    ("DELETE", "/api/runs/", None, 405, "method_not_allowed"),
    ("OPTIONS", "/api/runs/", None, 405, "method_not_allowed"),
    ("POST", "/api/evaluate/", b"{", 400, "parse_error"),
    ("POST", "/api/evaluate/", b'{"output": NaN, "assertions": []}', 400, "parse_error"),
    ("POST", "/api/evaluate/", b'{"output": 1e999, "assertions": []}', 400, "parse_error"),
    ("POST", "/api/evaluate/", b'{"output": "\\ud800", "assertions": []}', 400, "parse_error"),
    ("POST", "/api/evaluate/", b'{"output": "\\u0000", "assertions": []}', 400, "parse_error"),
    ("POST", "/api/evaluate/", b"[" * 200_000, 400, "parse_error"),
    ("POST", "/api/evaluate/", b'{"output": ' + b"[" * 600 + b"]" * 600 + b"}", 400, "parse_error"),
    ("POST", "/api/runs/ingest/", b'{"inputs": ' + b"[" * 600 + b"]" * 600 + b"}", 400, "parse_error"),
    ("POST", "/api/evaluate/", b"\xff", 400, "parse_error"),
    (
        "POST",
        "/api/runs/ingest/",
        b'{"workflow": "\\ud800", "nodes": [{"node_id": "\\udfff"}]}',
        400,
        "invalid",
    ),
    ("POST", "/api/runs/ingest/", b'{"\\ud800": 1}', 400, "invalid"),
    ("POST", "/api/evaluate/", b"[]", 400, "invalid"),
    ("POST", "/api/evaluate/", b'{"output": "' + b"x" * 4_200_000 + b'"}', 413, "too_large"),
    ("POST", "/api/workflows/none/runs/", b"{}", 404, "not_found"),
    ("PUT", "/api/workflows/none/", b"{}", 404, "not_found"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), REFUSALS)
def test_every_refusal_has_one_shape(method: str, path: str, body: Any, status: int, code: str) -> None:
    response = caller().generic(method, path, body or b"", content_type="application/json")
    assert response.status_code == status, response.content[:300]
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "details"}
    assert error["code"] == code
    assert error["message"]


def test_only_json_is_read() -> None:
    response = caller().post("/api/evaluate/", b"a=1", content_type="application/x-www-form-urlencoded")
    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_media_type")


def test_paths_of_nested_faults_are_places() -> None:
    response = caller().post(
        "/api/evaluate/", {"assertions": [{}, 1], "context": {"cost_usd": "x", "cost": 1}}
    )
    paths = [detail["path"] for detail in response.json()["error"]["details"]]
    assert paths == ["output", "assertions[1]", "context.cost", "context.cost_usd"]


def test_nobody_is_401_with_a_challenge_and_not_a_redirect() -> None:
    response = APIClient().get("/api/runs/")
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Token")
    assert response.json()["error"]["code"] == "not_authenticated"


def test_tokens_expire_are_revoked_and_end_with_their_user() -> None:
    client = caller("viewer")
    assert client.get("/api/runs/").status_code == 200
    assert ApiToken.objects.get().last_used_at is not None
    for change, back in [
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, {"expires_at": None}),
        ({"revoked_at": timezone.now()}, {"revoked_at": None}),
    ]:
        ApiToken.objects.update(**change)
        assert client.get("/api/runs/").status_code == 401
        ApiToken.objects.update(**back)
    user = user_in("viewer")
    user.is_active = False
    user.save()
    assert client.get("/api/runs/").status_code == 401


def test_only_the_hash_of_a_token_is_kept() -> None:
    token, key = services.make_token(user_in("viewer"), "ci")
    kept = [str(value) for value in ApiToken.objects.filter(pk=token.pk).values_list()[0]]
    assert not any(key in value for value in kept)
    assert not any(key[8:] in value for value in kept)


@pytest.mark.parametrize("header", ["Token", "Token ", "Token nonsense", "token rs_x", "Token \xff"])
def test_a_key_that_is_none_is_401(header: str) -> None:
    assert APIClient().get("/api/runs/", HTTP_AUTHORIZATION=header).status_code == 401


def test_a_token_limited_to_a_role_stays_in_it() -> None:
    limited = caller("admin", limited_to="viewer")
    assert limited.get("/api/runs/").status_code == 200
    response = limited.post("/api/souls/", {"slug": "s"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "permission_denied")


def test_a_session_needs_csrf_to_write() -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user_in("editor"), backend="django.contrib.auth.backends.ModelBackend")
    assert browser.get("/api/souls/").status_code == 200
    body = {"slug": "s"}
    assert browser.post("/api/souls/", body, content_type="application/json").status_code == 403
    secret = "s" * 32
    browser.cookies["csrftoken"] = secret
    allowed = browser.post(
        "/api/souls/", body, content_type="application/json", headers={"X-CSRFToken": secret}
    )
    assert allowed.status_code == 201


def test_head_needs_what_get_needs() -> None:
    User.objects.create_user("roleless")
    browser = Client()
    browser.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert browser.head("/api/runs/").status_code == 403
    assert caller("viewer").head("/api/runs/").status_code == 200


def test_too_many_calls_are_slowed_per_token(settings: Any) -> None:
    cache.clear()
    settings.API_RATE = "3/minute"
    busy, other = caller("viewer"), caller("viewer")
    statuses = [busy.get("/api/souls/").status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    refused = busy.get("/api/souls/")
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.json()["error"]["code"] == "throttled"
    assert other.get("/api/souls/").status_code == 200


def test_a_break_of_ours_is_500_in_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from workflows_app.api import souls

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(souls, "get_object_or_404", broken)
    client = caller("viewer")
    client.raise_request_exception = False
    response = client.get("/api/souls/x/")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")
    assert b"secret detail" not in response.content
