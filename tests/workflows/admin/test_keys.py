"""Tokens, provider keys and people in the admin: shown once, never shown, never more than allowed."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.callers import user_in
from tests.html import squeezed
from tests.workflows.admin.test_workflows import PLAIN, as_
from tests.workflows.engine.providers.openai_server import OpenAIServer, respond
from workflows_app import services
from workflows_app.models import ApiToken, AuditEntry, PriceOverride, Provider, Soul
from workflows_app.security import access, credentials

pytestmark = pytest.mark.django_db

TOKENS = "/admin/workflows_app/apitoken/"
PROVIDERS = "/admin/workflows_app/provider/"
USERS = "/admin/auth/user/"
KEY = "sk-never-show-this-1234567890"


def make_token(client: Client, **fields: object) -> str:
    page = squeezed(client.post(f"{TOKENS}add/", {"name": "ci", "role": "", "days": "90", **fields}))
    return re.findall(r"rs_[\w-]{40,}", page)[0]


def test_a_token_is_shown_once_and_opens_the_door_until_it_is_revoked() -> None:
    admin = as_("admin")
    key = make_token(admin, user=user_in("editor").pk, role="viewer")
    token = ApiToken.objects.get()
    assert (token.name, token.role, token.user) == ("ci", "viewer", user_in("editor"))
    assert token.expires_at is not None and token.digest not in key
    for url in (TOKENS, f"{TOKENS}{token.pk}/change/", "/admin/workflows_app/auditentry/", "/admin/"):
        page = squeezed(admin.get(url))
        assert key not in page and token.digest not in page
    made = AuditEntry.objects.get(action="token.make")
    assert made.user == user_in("admin") and key not in str(made.detail)

    assert access.token_for(key) == token
    admin.post(TOKENS, {"action": "revoke", "_selected_action": [token.pk]})
    assert access.token_for(key) is None
    assert AuditEntry.objects.get(action="token.revoke").user == user_in("admin")


def test_a_token_is_never_edited_and_deleted_only_when_it_opens_nothing() -> None:
    admin = as_("admin")
    make_token(admin, user=user_in("admin").pk)
    token = ApiToken.objects.get()
    assert admin.post(f"{TOKENS}{token.pk}/change/", {"role": "admin"}).status_code == 403
    assert admin.post(f"{TOKENS}{token.pk}/delete/", {"post": "yes"}).status_code == 403
    services.revoke_token(token)
    assert admin.post(f"{TOKENS}{token.pk}/delete/", {"post": "yes"}).status_code == 302
    assert AuditEntry.objects.filter(action="apitoken.delete").exists()


def test_only_a_superuser_makes_tokens_of_a_superuser_and_names_are_used_once() -> None:
    root = User.objects.create_superuser("root")
    admin = as_("admin")
    refused = admin.post(f"{TOKENS}add/", {"name": "up", "user": root.pk, "days": "30"})
    assert "Only a superuser" in squeezed(refused)
    make_token(admin, user=user_in("admin").pk)
    twice = admin.post(f"{TOKENS}add/", {"name": "ci", "user": user_in("admin").pk, "days": "30"})
    assert twice.status_code == 200 and ApiToken.objects.count() == 1


def save_provider(client: Client, url: str, **fields: str) -> str:
    data = {"kind": "openai", "base_url": "http://vllm:8000/v1", "enabled": "on", **fields}
    return squeezed(client.post(url, data, follow=True))


def test_a_provider_key_goes_in_and_never_comes_out() -> None:
    admin = as_("admin")
    assert KEY not in save_provider(admin, f"{PROVIDERS}add/", name="local", new_key=KEY)
    provider = Provider.objects.get()
    assert credentials.access_of(provider).key == KEY
    assert KEY not in provider.encrypted_key
    change = f"{PROVIDERS}{provider.pk}/change/"
    for url in (PROVIDERS, change, f"{PROVIDERS}{provider.pk}/history/", "/admin/workflows_app/auditentry/"):
        page = squeezed(admin.get(url))
        assert KEY not in page and provider.encrypted_key not in page
    bad = save_provider(admin, change, base_url="ftp://x", new_key=KEY)
    assert KEY not in bad and "give one like https://api.openai.com/v1" in bad

    save_provider(admin, change)
    provider.refresh_from_db()
    assert credentials.access_of(provider).key == KEY, "an empty field keeps the key"
    save_provider(admin, change, remove_key="on")
    provider.refresh_from_db()
    assert provider.encrypted_key == ""
    actions = AuditEntry.objects.filter(target="local").values_list("action", flat=True)
    assert {"provider.add", "provider.key", "provider.change"} <= set(actions)


def test_a_stored_key_is_not_sent_to_an_address_set_later() -> None:
    admin = as_("admin")
    save_provider(admin, f"{PROVIDERS}add/", name="local", new_key=KEY)
    change = f"{PROVIDERS}{Provider.objects.get().pk}/change/"
    refused = save_provider(admin, change, base_url="https://elsewhere.example/v1")
    assert "enter the key for this one" in refused
    assert Provider.objects.get().base_url == "http://vllm:8000/v1"
    save_provider(admin, change, base_url="https://elsewhere.example/v1", new_key="another")
    assert Provider.objects.get().base_url == "https://elsewhere.example/v1"


def test_testing_a_connection_says_in_a_sentence_how_it_went() -> None:
    admin = as_("admin")
    save_provider(
        admin, f"{PROVIDERS}add/", name="blocked", base_url="http://169.254.169.254/v1", new_key=KEY
    )
    provider = Provider.objects.get()
    page = squeezed(admin.post(f"{PROVIDERS}{provider.pk}/test/", follow=True))
    assert "169.254.169.254 is a link-local address" in page and KEY not in page
    assert as_("editor").post(f"{PROVIDERS}{provider.pk}/test/").status_code in (302, 403)


def test_a_connection_that_works_is_reported_with_the_number_of_models() -> None:
    admin = as_("admin")
    with OpenAIServer(respond(200, {"data": [{"id": "a"}, {"id": "b"}]})) as server:
        save_provider(admin, f"{PROVIDERS}add/", name="local", base_url=server.url, new_key=KEY)
        page = admin.post(
            PROVIDERS,
            {"action": "test_connections", "_selected_action": [Provider.objects.get().pk]},
            follow=True,
        )
        shown = [str(message) for message in page.context["messages"]]
        assert shown == ["local: The server answers and lists 2 models."]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_roles_without_the_permission_see_no_providers_tokens_or_people() -> None:
    for url in (
        PROVIDERS,
        TOKENS,
        USERS,
        "/admin/workflows_app/auditentry/",
        "/admin/workflows_app/priceoverride/",
    ):
        assert as_("editor").get(url).status_code == 403, url
        assert as_("admin").get(url).status_code == 200, url


def test_prices_are_used_from_the_next_block_on_and_kept_in_the_log(
    django_capture_on_commit_callbacks,
) -> None:  # type: ignore[no-untyped-def]
    assert "house-model" not in credentials.price_overrides()
    with django_capture_on_commit_callbacks(execute=True):
        as_("admin").post(
            "/admin/workflows_app/priceoverride/add/",
            {"model_name": "house-model", "input_per_million_usd": "1.5", "output_per_million_usd": "2"},
        )
    assert PriceOverride.objects.count() == 1
    assert "house-model" in credentials.price_overrides()
    assert AuditEntry.objects.get(action="priceoverride.add").detail["input_usd"] == "1.5"


def test_who_edits_people_cannot_make_themselves_a_superuser() -> None:
    admin, me = as_("admin"), user_in("admin")
    data = {"username": "admin", "is_active": "on", "is_staff": "on", "is_superuser": "on", "groups": [Group.objects.get(name="admin").pk],
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "user_permissions": []}  # fmt: skip
    assert admin.post(f"{USERS}{me.pk}/change/", data).status_code == 302
    me.refresh_from_db()
    assert not me.is_superuser
    root = User.objects.create_superuser("root")
    assert admin.post(f"{USERS}{root.pk}/change/", data).status_code == 403
    assert admin.post(f"{USERS}{root.pk}/password/", {"password1": "x", "password2": "x"}).status_code == 403


def test_a_role_given_to_a_person_is_in_the_audit_log() -> None:
    person = User.objects.create_user("bob")
    data = {"username": "bob", "is_active": "on", "groups": [Group.objects.get(name="editor").pk],
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}  # fmt: skip
    as_("admin").post(f"{USERS}{person.pk}/change/", data)
    entry = AuditEntry.objects.get(action="user.change")
    assert (entry.user, entry.target, entry.detail["roles"]) == (user_in("admin"), "bob", ["editor"])
    assert "Groups" in entry.detail["fields"]


def test_roles_themselves_are_not_edited_here() -> None:
    root = Client()
    root.force_login(
        User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    viewer = Group.objects.get(name="viewer")
    root.post(f"/admin/auth/group/{viewer.pk}/change/", {"name": "viewer", "permissions": []})
    assert viewer.permissions.count() == len(access.VIEWER)
    page = squeezed(root.get(f"/admin/auth/group/{viewer.pk}/change/"))
    assert page.count("<li>Can view ") == len(access.VIEWER)
    assert ">People</a>" in page and "Authentication" not in page
    assert root.post(f"/admin/auth/group/{viewer.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_soul_shows_where_it_is_used_and_what_it_was() -> None:
    editor = as_("editor")
    data = {
        "slug": "sage",
        "role": "Sage",
        "system_prompt": "Be wise.",
        "provider": "demo",
        "model_name": "demo-small",
    }
    assert editor.post("/admin/workflows_app/soul/add/", data).status_code == 302
    soul = Soul.objects.get()
    library = PLAIN.replace("soul_ref: analyst", "soul_ref: sage").replace(
        "souls:\n  analyst", "souls:\n  other"
    )
    services.save_version("asks-sage", library)
    services.save_version("brings-its-own", PLAIN.replace("analyst", "sage"))
    change = f"/admin/workflows_app/soul/{soul.pk}/change/"
    page = squeezed(editor.get(change))
    assert "asks-sage</a>: analyze" in page and "brings-its-own" not in page
    editor.post(change, {**data, "system_prompt": "Be brief."})
    assert soul.versions.count() == 2
    soul.refresh_from_db()
    page_of_version = f"/souls/sage/versions/{soul.version}/"
    assert f'href="{page_of_version}"' in squeezed(editor.get(change))
    again = squeezed(editor.get(page_of_version))
    assert "<del>wise</del>" in again and "<ins>brief</ins>" in again
    assert AuditEntry.objects.filter(action="soul.save", user=user_in("editor")).count() == 2
    assert (
        as_("admin").post(f"/admin/workflows_app/soul/{soul.pk}/delete/", {"post": "yes"}).status_code == 403
    )


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("", "sk-environment"),
        ("https://gateway.example/v1/", "sk-environment"),
        ("https://elsewhere.example/v1", ""),
    ],
)
def test_the_key_of_the_environment_goes_to_its_own_address_only(
    settings: Any, address: str, key: str
) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-environment", "https://gateway.example/v1"
    assert credentials.access_of(Provider(name="any", kind="openai", base_url=address)).key == key
