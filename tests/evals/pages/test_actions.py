"""What people do on the pages: run, pin."""

import pytest

from evals_app.models import BlockStatistics, PinnedBaseline
from tests.callers import user_in
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import ONE_CODE_BLOCK, make_workflow
from tests.html import squeezed
from workflows_app.models import Run, Workflow

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
