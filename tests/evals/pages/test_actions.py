"""What people do on the pages: run, pin, save."""

import pytest

from evals_app.models import BlockStatistics, PinnedBaseline
from tests.callers import user_in
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import ONE_CODE_BLOCK, make_workflow
from tests.html import squeezed
from workflows_app.models import Run, Workflow, WorkflowVersion

pytestmark = pytest.mark.django_db
TYPED = ONE_CODE_BLOCK.replace(
    "    - {name: text, type: string, default: hello}\n",
    """\
    - {name: text, type: string, required: true, description: What to shout.}
    - {name: times, type: integer, default: 2}
    - {name: loud, type: boolean, default: true}
    - {name: extra, type: object}
""",
)
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


# Run


def test_one_button_starts_a_run_with_the_defaults():
    make_workflow()
    response = visitor().post("/workflows/shout/run/", {"defaults": "1"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}/"
    assert run.inputs == {"text": "hello"}
    assert run.started_by == user_in("operator")


def test_the_form_has_a_field_for_each_declared_input():
    make_workflow(TYPED)
    page = html(visitor(), "/workflows/shout/run/")
    assert 'name="input-text"' in page
    assert "What to shout." in page
    assert 'type="number" step="1"' in page
    assert 'type="checkbox" id="page-id-input-loud"' in page
    assert 'name="input-extra"' in page


def test_what_is_typed_becomes_values_of_the_declared_types():
    make_workflow(TYPED)
    typed = {"input-text": "a\r\nb", "input-times": "3", "input-extra": '{"a": [1]}', "simulation": "1"}
    assert visitor().post("/workflows/shout/run/", typed).status_code == 302
    run = Run.objects.get()
    assert run.inputs == {"text": "a\nb", "times": 3, "loud": False, "extra": {"a": [1]}}
    assert run.environment == "simulation"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"input-text": ""}, "is required"),
        ({"input-text": "x", "input-times": "many"}, "“many” is not a number."),
        ({"input-text": "x", "input-times": "1.5"}, "must be of type integer"),
        ({"input-text": "x", "input-extra": "{"}, "is not JSON"),
        ({"input-text": "x", "input-extra": "[]"}, "must be of type object"),
        ({"input-text": "x", "input-times": "NaN"}, "is not a number"),
    ],
)
def test_a_wrong_input_is_shown_at_its_field_and_starts_nothing(typed, expected):
    make_workflow(TYPED)
    response = visitor().post("/workflows/shout/run/", typed)
    assert response.status_code == 400
    page = squeezed(response)
    assert expected.replace("'", "&#x27;") in page
    assert 'aria-invalid="true"' in page
    assert not Run.objects.exists()


def test_a_workflow_without_declared_inputs_takes_an_object():
    make_workflow(ONE_CODE_BLOCK.partition("interface:")[0])
    assert visitor().post("/workflows/shout/run/", {"inputs": "[1]"}).status_code == 400
    visitor().post("/workflows/shout/run/", {"inputs": '{"text": "x"}'})
    assert Run.objects.get().inputs == {"text": "x"}


def test_a_disabled_workflow_refuses_politely():
    Workflow.objects.filter(pk=make_workflow().pk).update(enabled=False)
    response = visitor().post("/workflows/shout/run/", {"defaults": "1"}, follow=True)
    assert "is disabled" in squeezed(response)


def test_an_earlier_version_can_be_run():
    make_workflow()
    make_workflow(ONE_CODE_BLOCK + "# changed\n")
    visitor().post("/workflows/shout/run/", {"version": "1", "defaults": "1"})
    assert Run.objects.get().version.number == 1


# Pin


@pytest.mark.parametrize("chosen", [{"version": "1"}, {"run": "#3"}, {"run": "3"}])
def test_a_baseline_is_pinned_and_unpinned(chosen):
    add_history(make_workflow(), [1.0, 0.5, 0.0])
    editor = visitor("editor")
    page = squeezed(editor.post("/workflows/shout/baseline/", chosen, follow=True))
    assert "New runs are compared with" in page
    assert "Unpin" in page
    mean = BlockStatistics.objects.get().pinned["score"]["mean"]
    assert mean == pytest.approx(0.5 if "version" in chosen else 0.0)
    editor.post("/workflows/shout/baseline/", {})
    assert not PinnedBaseline.objects.exists()
    assert BlockStatistics.objects.get().pinned is None


PATHS = [
    # where the form was                            where it leads back to
    ("http://testserver/workflows/shout/",          "/workflows/shout/"),
    ("http://testserver/workflows/shout/?range=50", "/workflows/shout/?range=50"),
    ("http://testserver/?range=24h",                "/workflows/shout/"),
    ("http://[?range=24h",                          "/workflows/shout/"),
    ("",                                            "/workflows/shout/"),
]  # fmt: skip


@pytest.mark.parametrize(("was", "back"), PATHS)
def test_what_is_done_in_a_section_leads_back_to_it(was, back):
    regression = add_regression(add_history(make_workflow(), [1.0, 0.5])[-1])
    admin = visitor("admin")
    for path, section in (
        (f"/regressions/{regression.pk}/acknowledge/", "regressions"),
        (f"/regressions/{regression.pk}/resolve/", "regressions"),
        ("/workflows/shout/baseline/", "versions"),
    ):
        assert admin.post(path, headers={"Referer": was})["Location"] == f"{back}#{section}"


@pytest.mark.parametrize(
    ("was", "back"), [("/?range=24h", "/?range=24h"), ("/", "/"), ("/runs/?status=failed", "/")]
)
def test_acknowledging_from_the_dashboard_leads_back_to_the_range_picked_there(was, back):
    regression = add_regression(add_history(make_workflow(), [1.0, 0.5])[-1])
    path, referer = f"/regressions/{regression.pk}/acknowledge/", f"http://testserver{was}"
    answer = visitor("admin").post(path, {"next": "/"}, headers={"Referer": referer})
    assert answer["Location"] == back


@pytest.mark.parametrize("chosen", [{"version": "9"}, {"run": "nobody"}, {"run": "99"}, {"version": "x"}])
def test_pinning_what_is_not_there_is_reported(chosen):
    add_history(make_workflow(), [1.0])
    page = squeezed(visitor("editor").post("/workflows/shout/baseline/", chosen, follow=True))
    assert "shout has no" in page
    assert not PinnedBaseline.objects.exists()


# Save


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
