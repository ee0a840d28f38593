"""Every door that saves a text compiles it once, follows its `enabled`, and refuses in the same order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.callers import caller, user_in
from tests.factories import ONE_CODE_BLOCK, SOUL, make_workflow
from workflows_app.engine import validate
from workflows_app.models import Workflow

pytestmark = pytest.mark.django_db
TEXT = f'version: "1.0"\n{SOUL}blocks:\n  ask: {{type: llm, soul_ref: analyst, prompt: Hi}}\n'
CHANGED = TEXT + "# changed\n"
ADMIN = "/admin/workflows_app/workflow/"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed since the test began to look."""
    texts: list[str] = []
    parse = validate.parse

    def counted(text: str | bytes) -> Any:
        texts.append(str(text))
        return parse(text)

    monkeypatch.setattr(validate, "parse", counted)
    return texts


def browser() -> Client:
    client = Client()
    client.force_login(user_in("editor"), backend="django.contrib.auth.backends.ModelBackend")
    return client


def by_import(text: str, folder: Path) -> None:
    (folder / "asks.yaml").write_text(text)
    call_command("import_workflows", folder)


NEW: dict[str, Callable[[str, Path], Any]] = {
    "api": lambda text, _: caller("editor").post("/api/workflows/", {"slug": "asks", "yaml": text}),
    "site": lambda text, _: browser().post("/start/", {"slug": "asks", "yaml": text}, follow=True),
    "admin": lambda text, _: browser().post(
        f"{ADMIN}add/",
        {"slug": "asks", "yaml": text, "based_on": 0, "enabled": "on", "message": ""},
        follow=True,
    ),
    "import": by_import,
}
CHANGE: dict[str, Callable[[int, Path], Any]] = {
    "api": lambda pk, _: caller("editor").put(
        "/api/workflows/asks/", {"yaml": CHANGED}, headers={"If-Match": "*"}
    ),
    "site": lambda pk, _: browser().post(
        "/workflows/asks/edit/", {"yaml": CHANGED, "based_on": 1}, follow=True
    ),
    "admin": lambda pk, _: browser().post(
        f"{ADMIN}{pk}/change/", {"yaml": CHANGED, "based_on": 1, "enabled": "on", "message": ""}, follow=True
    ),
    "import": lambda pk, folder: by_import(CHANGED, folder),
}


@pytest.mark.parametrize("door", NEW)
def test_a_new_workflow_is_compiled_once_and_follows_its_text(
    door: str, compiled: list[str], tmp_path: Path
) -> None:
    text = f"enabled: false\n{TEXT}"
    NEW[door](text, tmp_path)
    assert Workflow.objects.get(slug="asks").enabled is False
    assert compiled == [text]


@pytest.mark.parametrize("door", CHANGE)
def test_a_new_version_is_compiled_once(door: str, compiled: list[str], tmp_path: Path) -> None:
    workflow = make_workflow(TEXT, "asks")
    compiled.clear()
    CHANGE[door](workflow.pk, tmp_path)
    assert workflow.versions.count() == 2
    assert compiled == [CHANGED]


def test_restoring_compiles_once(compiled: list[str]) -> None:
    workflow = make_workflow(TEXT, "asks")
    make_workflow(CHANGED, "asks")
    compiled.clear()
    browser().post(f"{ADMIN}{workflow.pk}/versions/1/restore/", {"based_on": 2}, follow=True)
    assert workflow.versions.count() == 3
    assert compiled == [TEXT]


def test_a_stale_base_is_answered_before_errors_and_errors_before_the_permission() -> None:
    make_workflow(TEXT, "asks")
    editor = caller("editor")

    def put(text: str, **headers: str) -> int:
        status: int = editor.put("/api/workflows/asks/", {"yaml": text}, headers=headers).status_code
        return status

    misnamed = f"id: other\n{ONE_CODE_BLOCK}"
    assert put(misnamed) == 428
    assert put(misnamed, **{"If-Match": '"7-old-on"'}) == 412
    assert put(misnamed, **{"If-Match": "*"}) == 400
    assert put(ONE_CODE_BLOCK, **{"If-Match": "*"}) == 403
    assert editor.post("/api/workflows/", {"slug": "shout", "yaml": misnamed}).status_code == 400
