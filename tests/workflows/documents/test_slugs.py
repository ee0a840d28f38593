"""One rule for the slug of a new workflow or soul, whichever way it comes in; an older spelling keeps working."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from tests.callers import caller, user_in
from tests.factories import SOUL
from workflows_app import services
from workflows_app.engine.definition import InvalidDocument
from workflows_app.engine.slugs import slug_error, slug_from
from workflows_app.engine.validate import compile_document
from workflows_app.models import Soul, Workflow
from workflows_app.services.files import export_all, import_file

pytestmark = pytest.mark.django_db
TEXT = f'version: "1.0"\n{SOUL}blocks:\n  ask: {{type: llm, soul_ref: analyst, prompt: Hi}}\n'

SLUGS = [
    # slug, may be made, what a file of that name becomes
    ("triage", True, "triage"),
    ("a", True, "a"),
    ("2-steps_b", True, "2-steps_b"),
    ("x" * 200, True, "x" * 200),
    ("x" * 201, False, "x" * 200),
    ("MyFlow", False, "myflow"),
    ("my flow", False, "my-flow"),
    ("a--b", False, "a-b"),
    ("a__b", False, "a-b"),
    ("-a", False, "a"),
    ("a_", False, "a"),
    ("schema", False, "schema"),
    ("validate", False, "validate"),
    ("äö", False, ""),
]


def browser() -> Client:
    client = Client()
    client.force_login(user_in("editor"), backend="django.contrib.auth.backends.ModelBackend")
    return client


def through_the_api(slug: str) -> Any:
    return caller("editor").post("/api/workflows/", {"slug": slug, "yaml": TEXT})


def through_the_admin(slug: str) -> Any:
    sent = {"slug": slug, "yaml": TEXT, "based_on": 0, "enabled": "on"}
    return browser().post("/admin/workflows_app/workflow/add/", sent)


def through_the_editor(slug: str) -> Any:
    return browser().post("/start/", {"slug": slug, "yaml": TEXT})


def through_a_document(slug: str) -> Any:
    return browser().post("/start/", {"slug": "", "yaml": f"id: {slug}\n{TEXT}"})


def through_a_service(slug: str) -> Any:
    try:
        return services.save_version(slug, TEXT)
    except InvalidDocument as invalid:
        return invalid


@pytest.mark.parametrize(("slug", "is_allowed", "_"), SLUGS)
@pytest.mark.parametrize(
    "save",
    [through_the_api, through_the_admin, through_the_editor, through_a_document, through_a_service],
)
def test_every_way_of_making_a_workflow_has_the_same_rule(
    save: Callable[[str], Any], slug: str, is_allowed: bool, _: str
) -> None:
    assert (slug_error(slug) is None) == is_allowed
    save(slug)
    assert list(Workflow.objects.values_list("slug", flat=True)) == ([slug] if is_allowed else [])


@pytest.mark.parametrize(("name", "_", "slug"), SLUGS)
def test_a_file_name_becomes_the_closest_slug(name: str, _: bool, slug: str, tmp_path: Path) -> None:
    assert slug_from(name) == slug
    if len(name) > 200 or slug_error(slug):
        return
    path = tmp_path / f"{name}.yaml"
    path.write_text(TEXT)
    assert import_file(path).workflow.slug == slug


@pytest.mark.parametrize("name", ["schema", "äö"])
def test_a_file_whose_name_makes_no_slug_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text(TEXT)
    with pytest.raises(InvalidDocument, match=name):
        import_file(path)


@pytest.mark.parametrize("slug", ["MyFlow", "a--b", "-a"])
def test_a_workflow_with_an_older_spelling_keeps_working(slug: str, tmp_path: Path) -> None:
    workflow = Workflow.objects.create(slug=slug)
    assert services.save_version(slug, TEXT).number == 1
    assert [import_file(path).number for path in export_all(tmp_path)] == [1]
    etag = {"If-Match": "*"}
    changed = {"yaml": TEXT + "# api\n"}
    assert caller("editor").put(f"/api/workflows/{slug}/", changed, headers=etag).status_code == 200
    page = browser().post(f"/workflows/{slug}/edit/", {"yaml": TEXT + "# page\n", "based_on": "2"})
    assert page["Location"] == f"/workflows/{slug}/"
    sent = {"yaml": TEXT + "# admin\n", "based_on": 3, "enabled": "on"}
    assert browser().post(f"/admin/workflows_app/workflow/{workflow.pk}/change/", sent).status_code == 302
    assert services.start_run(Workflow.objects.get()).version.number == 4


def soul_through_the_api(slug: str) -> Any:
    return caller("editor").post("/api/souls/", {"slug": slug})


def soul_through_the_admin(slug: str) -> Any:
    sent = {"slug": slug, "provider": "demo", "model_name": "demo-small"}
    return browser().post("/admin/workflows_app/soul/add/", sent)


def soul_through_a_service(slug: str) -> Any:
    try:
        return services.save_soul(Soul(slug=slug))
    except ValidationError as invalid:
        return invalid


@pytest.mark.parametrize(("slug", "is_allowed", "_"), SLUGS)
@pytest.mark.parametrize("save", [soul_through_the_api, soul_through_the_admin, soul_through_a_service])
def test_every_way_of_making_a_soul_has_the_same_rule(
    save: Callable[[str], Any], slug: str, is_allowed: bool, _: str
) -> None:
    save(slug)
    assert list(Soul.objects.values_list("slug", flat=True)) == ([slug] if is_allowed else [])
    if is_allowed:
        assert set(compile_document(TEXT.replace("analyst", f'"{slug}"')).souls) == {slug}


@pytest.mark.parametrize("slug", ["MySoul", "a--b", "-a", "_a"])
def test_a_soul_with_an_older_spelling_keeps_working(slug: str) -> None:
    soul = Soul.objects.create(slug=slug)
    assert caller("editor").patch(f"/api/souls/{slug}/", {"role": "Clerk"}).status_code == 200
    assert caller("editor").put(f"/api/souls/{slug}/", {"slug": slug, "role": "Judge"}).status_code == 200
    sent = {"role": "Analyst", "provider": "demo", "model_name": "demo-small"}
    assert browser().post(f"/admin/workflows_app/soul/{soul.pk}/change/", sent).status_code == 302
    soul.refresh_from_db()
    assert soul.role == "Analyst" and soul.versions.count() == 3
    assert set(compile_document(TEXT.replace("analyst", slug)).souls) == {slug}
