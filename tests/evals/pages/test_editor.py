"""The page on which a workflow is written: checked while typing, saved, saved again."""

import pytest

from tests.callers import user_in
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import ONE_CODE_BLOCK, make_workflow
from tests.html import squeezed
from workflows_app.models import Workflow, WorkflowVersion

pytestmark = pytest.mark.django_db
NO_CODE = """\
version: "1.0"
souls:
  analyst: {role: Analyst, system_prompt: You analyse., provider: demo, model_name: demo-small}
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: Analyse it.
"""


def check(role, text, slug=""):
    return squeezed(visitor(role).post("/start/check/", {"yaml": text, "slug": slug}))


def test_checking_while_typing_gives_every_error_with_its_line_or_the_graph():
    wrong = check("viewer", NO_CODE.replace("type: llm", "type: lml"))
    assert "1 error: this cannot be saved yet." in wrong
    assert 'data-line="6">blocks.analyze.type (line 6): ' in wrong
    assert "data-node-id" not in wrong
    right = check("viewer", NO_CODE)
    assert "No errors" in right and 'data-node-id="analyze"' in right
    assert "is not a slug" in check("viewer", NO_CODE, "\0 x")
    assert "calls itself &#x27;other&#x27;" in check("viewer", f"id: other\n{NO_CODE}", "analysis")


def test_checking_says_who_may_save_code():
    code = check("editor", ONE_CODE_BLOCK)
    assert "workflows_app.save_code" in code and 'data-node-id="shout"' in code
    assert "No errors" in check("admin", ONE_CODE_BLOCK)


@pytest.mark.parametrize("text", ["", "\t", "a: [", "- 1", "blocks:", "a: &a [*a]", "\0", "x" * 200_000])
def test_any_text_is_answered_with_errors(text):
    response = visitor("editor").post("/start/", {"yaml": text, "slug": "x"})
    assert "Not saved." in squeezed(response)
    assert response.status_code == 400
    assert "this cannot be saved yet" in squeezed(response)
    assert not Workflow.objects.exists()


def test_what_the_page_offers_can_be_saved_as_it_is():
    editor = visitor("editor")
    assert "Not saved." not in squeezed(editor.get("/start/"))
    offered = editor.get("/start/").context["form"].initial["yaml"]
    response = editor.post("/start/", {"yaml": offered, "slug": "", "then": "run"})
    assert response["Location"] == "/workflows/analysis/run/"


def test_a_valid_text_is_saved_and_then_run():
    editor = visitor("editor")
    sent = {"yaml": NO_CODE.replace("\n", "\r\n"), "slug": "analysis", "message": "Hello", "then": "run"}
    assert editor.post("/start/", sent)["Location"] == "/workflows/analysis/run/"
    version = WorkflowVersion.objects.get()
    assert version.yaml == NO_CODE
    assert (version.message, version.author) == ("Hello", user_in("editor"))


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("", "Give the workflow a short name"),
        ("Not One", "is not a slug"),
        ("schema", "is reserved"),
        ("shout", "already"),
    ],
)
def test_a_name_that_will_not_do_is_refused_with_the_reason(slug, expected):
    make_workflow()
    response = visitor("editor").post("/start/", {"yaml": NO_CODE, "slug": slug})
    assert response.status_code == 400
    assert expected in squeezed(response)


def test_code_is_saved_only_by_those_who_may():
    refused = visitor("editor").post("/start/", {"yaml": ONE_CODE_BLOCK, "slug": "shout"})
    assert refused.status_code == 403
    assert "workflows_app.save_code" in squeezed(refused)
    assert ONE_CODE_BLOCK.splitlines()[3] in squeezed(refused)  # what was typed is not lost
    assert visitor("admin").post("/start/", {"yaml": ONE_CODE_BLOCK, "slug": "shout"}).status_code == 302


def test_saving_the_same_text_again_says_that_nothing_changed():
    editor = visitor("editor")
    editor.post("/start/", {"yaml": NO_CODE, "slug": "analysis"})
    sent = {"yaml": NO_CODE, "based_on": "1"}
    page = squeezed(editor.post("/workflows/analysis/edit/", sent, follow=True))
    assert "Nothing changed: version 1" in page
    assert page.count("Saved as version 1.") == 1  # of the first time, which no page has shown yet
    assert WorkflowVersion.objects.count() == 1


def test_an_edit_makes_a_version_and_notices_another_editor():
    editor = visitor("editor")
    editor.post("/start/", {"yaml": NO_CODE, "slug": "analysis"})
    assert "Analyse it." in html(editor, "/workflows/analysis/edit/")
    changed = NO_CODE.replace("Analyse it.", "Analyse it well.")
    sent = {"yaml": changed, "based_on": "1"}
    assert editor.post("/workflows/analysis/edit/", sent)["Location"] == "/workflows/analysis/"
    late = editor.post("/workflows/analysis/edit/", {"yaml": NO_CODE, "based_on": "1"})
    assert late.status_code == 409
    assert "Version 2 was saved by editor while you were editing" in squeezed(late)
    assert "<del> well</del>" in squeezed(late)  # what they changed and mine does not
    assert WorkflowVersion.objects.count() == 2
    anyway = {"yaml": NO_CODE, "based_on": "1", "save_over": "2"}
    assert editor.post("/workflows/analysis/edit/", anyway).status_code == 302
    assert WorkflowVersion.objects.latest("number").yaml == NO_CODE
