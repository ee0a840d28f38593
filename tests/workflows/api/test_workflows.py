"""Workflows over the API: save, versions, ETags, validation."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from tests.callers import caller, queries_of
from tests.factories import ONE_CODE_BLOCK
from workflows_app.api.workflows import EXAMPLE_YAML
from workflows_app.models import AuditEntry, Workflow, WorkflowVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor() -> Any:
    client = caller("editor")
    assert client.post("/api/workflows/", {"slug": "analysis", "yaml": EXAMPLE_YAML}).status_code == 201
    return client


def test_creating_answers_with_the_text_and_its_version() -> None:
    response = caller("editor").post(
        "/api/workflows/", {"slug": "analysis", "yaml": EXAMPLE_YAML, "message": "First", "enabled": False}
    )
    assert response.status_code == 201
    body = response.json()
    version = body.pop("version")
    assert body == {"slug": "analysis", "name": "analysis", "enabled": False, "yaml": EXAMPLE_YAML}
    assert version.keys() == {"number", "sha256", "created_at", "author", "message"}
    assert (version["number"], version["author"], version["message"]) == (1, "editor", "First")
    assert AuditEntry.objects.filter(action="workflow.save").count() == 1


def test_a_slug_is_taken_once_and_ours_never(editor: Any) -> None:
    assert editor.post("/api/workflows/", {"slug": "analysis", "yaml": EXAMPLE_YAML}).status_code == 409
    for slug in ("validate", "schema", "no spaces"):
        response = editor.post("/api/workflows/", {"slug": slug, "yaml": EXAMPLE_YAML})
        assert response.json()["error"]["details"][0]["path"] == "slug"


def test_a_bad_document_is_refused_with_every_fault_and_its_line() -> None:
    text = EXAMPLE_YAML.replace("word-count", "wurd-count").replace("soul_ref: analyst", "soul_ref: nobody")
    response = caller("editor").post("/api/workflows/", {"slug": "analysis", "yaml": text})
    assert response.status_code == 400
    details = response.json()["error"]["details"]
    assert {detail["line"] for detail in details} == {7, 10}
    assert not Workflow.objects.exists()


def test_code_blocks_need_their_own_permission(editor: Any) -> None:
    response = editor.post("/api/workflows/", {"slug": "shout", "yaml": ONE_CODE_BLOCK})
    assert response.status_code == 403
    assert "workflows_app.save_code, which the role admin has" in response.json()["error"]["message"]
    changed = editor.put("/api/workflows/analysis/", {"yaml": ONE_CODE_BLOCK}, headers={"If-Match": "*"})
    assert changed.status_code == 403
    assert (
        caller("admin").post("/api/workflows/", {"slug": "shout", "yaml": ONE_CODE_BLOCK}).status_code == 201
    )
    limited = caller("admin", limited_to="editor")
    assert limited.post("/api/workflows/", {"slug": "other", "yaml": ONE_CODE_BLOCK}).status_code == 403


def test_a_change_needs_the_etag_it_is_based_on(editor: Any) -> None:
    etag = editor.get("/api/workflows/analysis/").headers["ETag"]
    text = EXAMPLE_YAML + "# changed\n"
    assert editor.put("/api/workflows/analysis/", {"yaml": text}).status_code == 428
    first = editor.put("/api/workflows/analysis/", {"yaml": text}, headers={"If-Match": etag})
    assert (first.status_code, first.json()["version"]["number"]) == (200, 2)
    assert first.headers["ETag"] != etag
    second = editor.put("/api/workflows/analysis/", {"yaml": EXAMPLE_YAML}, headers={"If-Match": etag})
    assert (second.status_code, second.json()["error"]["code"]) == (412, "stale")
    assert WorkflowVersion.objects.count() == 2
    unchanged = editor.get("/api/workflows/analysis/", headers={"If-None-Match": first.headers["ETag"]})
    assert unchanged.status_code == 304


def test_disabling_changes_the_etag_and_keeps_the_version(editor: Any) -> None:
    etag = editor.get("/api/workflows/analysis/").headers["ETag"]
    off = editor.patch("/api/workflows/analysis/", {"enabled": False}, headers={"If-Match": etag})
    assert (off.json()["enabled"], off.json()["version"]["number"]) == (False, 1)
    again = editor.patch("/api/workflows/analysis/", {"enabled": True}, headers={"If-Match": etag})
    assert again.status_code == 412


@pytest.mark.django_db(transaction=True)
def test_of_two_writers_at_once_one_is_reported() -> None:
    client = caller("editor")
    client.post("/api/workflows/", {"slug": "analysis", "yaml": EXAMPLE_YAML})
    etag = client.get("/api/workflows/analysis/").headers["ETag"]
    writers = [caller("editor") for _ in range(4)]
    statuses: list[int] = []
    barrier = threading.Barrier(len(writers))

    def write(index: int) -> None:
        barrier.wait()
        text = EXAMPLE_YAML + f"# {index}\n"
        response = writers[index].put("/api/workflows/analysis/", {"yaml": text}, headers={"If-Match": etag})
        statuses.append(response.status_code)
        connection.close()

    threads = [threading.Thread(target=write, args=(index,)) for index in range(len(writers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 412, 412, 412]
    assert WorkflowVersion.objects.count() == 2


def test_versions_are_listed_without_text_and_read_with_it(editor: Any) -> None:
    editor.put("/api/workflows/analysis/", {"yaml": EXAMPLE_YAML + "#\n"}, headers={"If-Match": "*"})
    listed = editor.get("/api/workflows/analysis/versions/").json()["results"]
    assert [row["number"] for row in listed] == [2, 1]
    assert "yaml" not in listed[0]
    assert editor.get("/api/workflows/analysis/versions/1/").json()["yaml"] == EXAMPLE_YAML
    assert editor.get("/api/workflows/analysis/versions/9/").status_code == 404


def test_validating_finds_faults_and_saves_nothing() -> None:
    viewer = caller("viewer")
    assert viewer.post("/api/workflows/validate/", {"yaml": EXAMPLE_YAML}).json() == {
        "valid": True,
        "faults": [],
    }
    found = viewer.post("/api/workflows/validate/", {"yaml": "blocks: ["}).json()
    assert found["valid"] is False
    assert found["faults"][0].keys() == {"path", "line", "message"}
    assert not Workflow.objects.exists()


def test_validating_for_a_workflow_knows_its_slug(editor: Any) -> None:
    text = "id: other\n" + EXAMPLE_YAML
    assert editor.post("/api/workflows/validate/", {"yaml": text}).json()["valid"]
    assert not editor.post("/api/workflows/analysis/validate/", {"yaml": text}).json()["valid"]


def test_the_documents_schema_knows_the_assertion_types() -> None:
    schema = caller("viewer").get("/api/workflows/schema/").json()
    assert "blocks" in schema["properties"]
    assert "levenshtein" in str(schema)


def test_workflows_are_filtered_by_truth_values_alone(editor: Any) -> None:
    found = {value: editor.get(f"/api/workflows/?enabled={value}") for value in ("true", "False", "maybe")}
    assert [len(found[value].json()["results"]) for value in ("true", "False")] == [1, 0]
    assert found["maybe"].status_code == 400
    assert "use true or false" in found["maybe"].content.decode()


def test_the_list_costs_the_same_for_any_number_of_workflows(editor: Any) -> None:
    before = queries_of(editor, "/api/workflows/?enabled=true")
    for index in range(12):
        assert editor.post("/api/workflows/", {"slug": f"w{index}", "yaml": EXAMPLE_YAML}).status_code == 201
    assert queries_of(editor, "/api/workflows/?enabled=true") == before
    page = editor.get("/api/workflows/?limit=5").json()
    slugs = [row["slug"] for row in page["results"]]
    while page["next"]:
        page = editor.get(page["next"]).json()
        slugs += [row["slug"] for row in page["results"]]
    assert slugs == sorted(Workflow.objects.values_list("slug", flat=True))
