"""Editing workflows in the admin: faults, versions, two writers, runs."""

import io
import zipfile

import pytest
from django.test import Client

from tests.callers import user_in
from tests.factories import ONE_CODE_BLOCK, SOUL, make_workflow
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import AuditEntry, Workflow

pytestmark = pytest.mark.django_db

LIST = "/admin/workflows_app/workflow/"
ADD = f"{LIST}add/"
PLAIN = f"""\
version: "1.0"
{SOUL}blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: Analyse {{{{ inputs.topic }}}}
    assertions:
      - {{type: contains, value: tide}}
interface:
  inputs:
    - {{name: topic, type: string, required: true, description: What to look into.}}
    - {{name: depth, type: integer, default: 2}}
    - {{name: strict, type: boolean}}
"""


def as_(role: str) -> Client:
    client = Client()
    client.force_login(user_in(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


def change(workflow: Workflow) -> str:
    return f"{LIST}{workflow.pk}/change/"


def sent(yaml: str, based_on: int = 1, **more: object) -> dict[str, object]:
    return {"yaml": yaml.replace("\n", "\r\n"), "based_on": based_on, "enabled": "on", "message": "", **more}


@pytest.fixture
def plain() -> Workflow:
    return make_workflow(PLAIN, "plain")


def test_a_new_workflow_is_saved_with_its_message_and_the_line_ends_it_was_written_with() -> None:
    response = as_("editor").post(ADD, {**sent(PLAIN, 0), "slug": "tides", "message": "First"})
    assert response.status_code == 302
    version = Workflow.objects.get(slug="tides").current_version
    assert version is not None
    assert (version.number, version.message, version.yaml) == (1, "First", PLAIN)
    assert version.author == user_in("editor")
    entry = AuditEntry.objects.get(action="workflow.save")
    assert (entry.user, entry.target) == (user_in("editor"), "tides")


def test_saving_is_refused_with_every_fault_and_nothing_is_written(plain: Workflow) -> None:
    wrong = PLAIN.replace("type: contains", "type: contians").replace("type: integer", "type: integr")
    response = as_("editor").post(change(plain), sent(wrong))
    assert response.status_code == 200
    page = squeezed(response)
    assert "blocks.analyze.assertions[0].type (line 10)" in page
    assert "Did you mean &#x27;contains&#x27;?" in page
    assert "interface.inputs[1].type (line 14)" in page
    assert "type: contians" in page, "the text typed is still there"
    plain.refresh_from_db()
    assert plain.versions.count() == 1


def test_the_second_of_two_writers_is_reported_sees_both_texts_and_overwrites_nothing(
    plain: Workflow,
) -> None:
    theirs = PLAIN.replace("value: tide", "value: theirs")
    services.save_version("plain", theirs, author=user_in("admin"), based_on=1)
    mine = PLAIN.replace("value: tide", "value: mine")
    editor = as_("editor")
    page = squeezed(editor.post(change(plain), sent(mine, based_on=1)))
    assert "Version 2 was saved by admin while you were editing" in page
    assert "<del>theirs</del>" in page and "<ins>mine</ins>" in page
    plain.refresh_from_db()
    assert plain.current_version is not None and plain.current_version.yaml == theirs

    services.save_version("plain", PLAIN, based_on=2)
    again = editor.post(change(plain), sent(mine, based_on=1, save_over=2))
    assert "Version 3 was saved by somebody" in squeezed(again)

    assert editor.post(change(plain), sent(mine, based_on=1, save_over=3)).status_code == 302
    plain.refresh_from_db()
    assert plain.current_version.yaml == mine
    assert [version.number for version in plain.versions.all()] == [4, 3, 2, 1]


def test_a_rival_noticed_only_while_saving_rolls_back_and_is_checked_again(
    plain: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = services.save_version

    def too_late(slug: str, yaml: str, **options: object) -> object:
        monkeypatch.setattr(services, "save_version", save)
        save(slug, PLAIN.replace("tide", "half"))  # must not stay
        raise services.Stale(plain.current_version)

    monkeypatch.setattr(services, "save_version", too_late)
    assert as_("editor").post(change(plain), sent(PLAIN.replace("tide", "mine"))).status_code == 302
    assert ["half" in version.yaml for version in plain.versions.all()] == [False, False]


def test_an_unchanged_text_makes_no_version(plain: Workflow) -> None:
    response = as_("editor").post(change(plain), sent(PLAIN), follow=True)
    assert "no new version" in squeezed(response)
    assert plain.versions.count() == 1


def test_code_blocks_are_saved_only_by_those_who_may(plain: Workflow) -> None:
    refused = as_("editor").post(change(plain), sent(ONE_CODE_BLOCK))
    assert "saving it needs the permission workflows_app.save_code" in squeezed(refused)
    assert plain.versions.count() == 1
    assert as_("admin").post(change(plain), sent(ONE_CODE_BLOCK)).status_code == 302


def test_restoring_code_needs_the_permission_too(plain: Workflow) -> None:
    services.save_version("plain", ONE_CODE_BLOCK)
    services.save_version("plain", PLAIN)
    url = f"{LIST}{plain.pk}/versions/2/restore/"
    assert as_("editor").post(url, {"based_on": 3}).status_code == 403
    assert as_("admin").post(url, {"based_on": 3}).status_code == 302
    assert plain.versions.count() == 4


def test_versions_are_listed_compared_and_restored_as_new_ones(plain: Workflow) -> None:
    services.save_version("plain", PLAIN.replace("value: tide", "value: moon"), message="Moon")
    editor = as_("editor")
    assert 'href="/workflows/plain/#versions"' in squeezed(editor.get(change(plain)))
    listed = squeezed(editor.get(f"{LIST}{plain.pk}/versions/", follow=True))
    assert "Moon" in listed and "v1" in listed
    assert '"/workflows/plain/versions/2/?against=1"' in squeezed(editor.get("/workflows/plain/versions/1/"))
    compared = squeezed(editor.get("/workflows/plain/versions/2/"))
    assert "<del>tide</del>" in compared and "<ins>moon</ins>" in compared
    assert "Restore version" not in compared, "it is the current one"
    restore = f"{LIST}{plain.pk}/versions/1/restore/"
    assert f'action="{restore}"' in squeezed(editor.get("/workflows/plain/versions/1/"))
    editor.post(restore, {"based_on": 2})
    plain.refresh_from_db()
    assert plain.current_version is not None
    assert (plain.current_version.number, plain.current_version.yaml) == (3, PLAIN)
    late = editor.post(f"{LIST}{plain.pk}/versions/2/restore/", {"based_on": 2}, follow=True)
    assert "Version 3 was saved meanwhile" in squeezed(late)
    assert plain.versions.count() == 3


def test_run_now_leads_to_the_form_of_the_workflows_page(plain: Workflow) -> None:
    assert f'href="/workflows/{plain.slug}/run/"' in squeezed(as_("editor").get(change(plain)))


def test_a_copy_begins_with_the_text_under_a_free_slug(plain: Workflow) -> None:
    services.save_version("plain", "id: plain\n" + PLAIN)
    make_workflow(PLAIN, "plain-copy")
    page = squeezed(as_("editor").get(f"{ADD}?copy=plain"))
    assert 'value="plain-copy-2"' in page
    assert "id: plain-copy-2\n" in page


def test_actions_enable_disable_and_export(plain: Workflow) -> None:
    make_workflow(PLAIN.replace("tide", "ünïcode"), "other")
    editor, chosen = as_("editor"), [str(row.pk) for row in Workflow.objects.all()]
    editor.post(LIST, {"action": "disable", "_selected_action": chosen})
    assert not Workflow.objects.filter(enabled=True).exists()
    editor.post(LIST, {"action": "enable", "_selected_action": chosen[:1]})
    assert Workflow.objects.filter(enabled=True).count() == 1
    actions = list(AuditEntry.objects.filter(user=user_in("editor")).values_list("action", flat=True))
    assert sorted(actions) == ["workflow.disable", "workflow.disable", "workflow.enable"]
    archive = editor.post(LIST, {"action": "export", "_selected_action": chosen})
    with zipfile.ZipFile(io.BytesIO(archive.content)) as files:
        assert sorted(files.namelist()) == ["other.yaml", "plain.yaml"]
        assert files.read("plain.yaml").decode() == PLAIN


def test_what_has_run_is_never_deleted(plain: Workflow) -> None:
    admin = as_("admin")
    services.start_run(plain, {"topic": "x"})
    assert admin.post(f"{LIST}{plain.pk}/delete/", {"post": "yes"}).status_code == 403
    never_run = make_workflow(PLAIN, "fresh")
    assert admin.post(f"{LIST}{never_run.pk}/delete/", {"post": "yes"}).status_code == 302
    assert AuditEntry.objects.filter(action="workflow.delete", target="fresh").exists()


def test_the_pages_of_paths_are_no_slugs() -> None:
    response = as_("editor").post(ADD, {**sent(PLAIN, 0), "slug": "validate"})
    assert "is reserved" in squeezed(response)


@pytest.mark.parametrize(
    ("role", "is_let_in"), [("viewer", False), ("operator", False), ("editor", True), ("admin", True)]
)
def test_the_admin_is_for_those_who_edit(plain: Workflow, role: str, is_let_in: bool) -> None:
    client = as_(role)
    response = client.get(change(plain), follow=True)
    assert response.status_code == (200 if is_let_in else 403)
    assert client.post(f"{LIST}check/", {"yaml": PLAIN}, follow=True).status_code == (
        200 if is_let_in else 403
    )


def test_staff_who_only_see_get_the_text_but_no_form(plain: Workflow) -> None:
    viewer = user_in("viewer")
    viewer.is_staff = True
    viewer.save()
    page = squeezed(as_("viewer").get(change(plain)))
    assert "value: tide" in page
    assert "<textarea" not in page and 'name="_save"' not in page
    assert as_("viewer").post(change(plain), sent(PLAIN)).status_code == 403


def test_the_admin_has_no_log_in_form_of_its_own() -> None:
    followed = Client().get("/admin/", follow=True)
    assert followed.redirect_chain[-1] == ("/login/?next=/admin/", 302)
    direct = Client().get("/admin/login/?next=/admin/workflows_app/workflow/")
    assert direct["Location"] == "/login/?next=/admin/workflows_app/workflow/"
    assert Client().post("/admin/login/", {"username": "x", "password": "y"}).status_code == 302
    away = Client().get("/admin/login/?next=https://elsewhere.example/")
    assert away["Location"] == "/login/?next=/admin/"
