"""The soul library over the API."""

import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.callers import caller, queries_of, user_in
from tests.html import squeezed
from workflows_app.models import Soul, SoulVersion

pytestmark = pytest.mark.django_db


def test_a_changed_identity_is_a_new_version() -> None:
    editor = caller("editor")
    made = editor.post("/api/souls/", {"slug": "analyst", "role": "Analyst", "temperature": 0.2})
    assert made.status_code == 201
    renamed = editor.patch("/api/souls/analyst/", {"name": "Ann"}).json()
    assert renamed["version"] == made.json()["version"]
    changed = editor.put(
        "/api/souls/analyst/", {"slug": "analyst", "role": "Analyst", "temperature": 0.3}
    ).json()
    assert changed["version"] != made.json()["version"]
    history = editor.get("/api/souls/analyst/history/").json()["results"]
    assert [row["version"] for row in history] == [changed["version"], made.json()["version"]]
    assert history[0]["author"] == "editor"
    assert SoulVersion.objects.count() == 2


def test_a_slug_is_taken_once_and_kept() -> None:
    editor = caller("editor")
    editor.post("/api/souls/", {"slug": "analyst"})
    assert editor.post("/api/souls/", {"slug": "analyst"}).status_code == 409
    assert editor.patch("/api/souls/analyst/", {"slug": "other"}).status_code == 409
    assert editor.patch("/api/souls/analyst/", {"version": "x"}).status_code == 400
    assert editor.delete("/api/souls/analyst/").status_code == 405


def test_a_change_based_on_another_state_is_refused() -> None:
    editor = caller("editor")
    made = editor.post("/api/souls/", {"slug": "analyst"})
    based = {"If-Match": made.headers["ETag"]}
    named = editor.patch("/api/souls/analyst/", {"name": "Ann"}, headers=based)
    assert named.status_code == 200 and named.headers["ETag"] != made.headers["ETag"]
    stale = editor.put("/api/souls/analyst/", {"slug": "analyst", "name": "Bea"}, headers=based)
    assert stale.status_code == 412 and named.headers["ETag"] in stale.json()["error"]["message"]
    now = editor.get("/api/souls/analyst/")
    assert (now.json()["name"], now.headers["ETag"]) == ("Ann", named.headers["ETag"])


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_of_two_changes_at_once_neither_is_lost() -> None:
    caller("editor").post("/api/souls/", {"slug": "analyst"})
    for attempt in range(10):
        barrier = threading.Barrier(2, timeout=10)

        def write(client: Any, name: str, barrier: threading.Barrier, value: str) -> None:
            barrier.wait()
            client.patch("/api/souls/analyst/", {name: value})
            connection.close()

        threads = [
            threading.Thread(target=write, args=(caller("editor"), name, barrier, str(attempt)))
            for name in ("name", "role")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        soul = Soul.objects.get()
        assert (soul.name, soul.role) == (str(attempt), str(attempt))


def test_a_form_of_the_admin_that_was_opened_before_another_edit_is_refused() -> None:
    caller("editor").post("/api/souls/", {"slug": "analyst", "role": "Analyst"})
    soul = Soul.objects.get()
    client = Client()
    client.force_login(user_in("editor"), backend="django.contrib.auth.backends.ModelBackend")
    address = f"/admin/workflows_app/soul/{soul.pk}/change/"

    def filled_in() -> dict[str, Any]:
        form = client.get(address).context["adminform"].form
        shown = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
        return {name: "" if value is None else value for name, value in shown.items()}

    opened = filled_in()
    caller("editor").patch("/api/souls/analyst/", {"role": "Critic"})
    refused = client.post(address, {**opened, "name": "Ann"})
    assert "Somebody saved this soul meanwhile" in squeezed(refused)
    assert client.post(address, {**filled_in(), "name": "Ann"}).status_code == 302
    soul.refresh_from_db()
    assert (soul.name, soul.role) == ("Ann", "Critic")


def test_the_list_costs_the_same_for_any_number_of_souls() -> None:
    viewer = caller("viewer")
    Soul.objects.create(slug="a", version="0")
    before = queries_of(viewer, "/api/souls/")
    Soul.objects.bulk_create([Soul(slug=f"s{index}", version="0") for index in range(20)])
    assert queries_of(viewer, "/api/souls/") == before
