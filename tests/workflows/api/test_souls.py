"""The soul library over the API."""

import pytest

from tests.callers import caller, queries_of
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


def test_the_list_costs_the_same_for_any_number_of_souls() -> None:
    viewer = caller("viewer")
    Soul.objects.create(slug="a", version="0")
    before = queries_of(viewer, "/api/souls/")
    Soul.objects.bulk_create([Soul(slug=f"s{index}", version="0") for index in range(20)])
    assert queries_of(viewer, "/api/souls/") == before
