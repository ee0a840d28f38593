"""What the admin's lists and forms say, in our words where Django's would be odd."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.factories import make_workflow
from tests.html import squeezed
from tests.workflows.admin.test_facts import add_rows
from tests.workflows.admin.test_workflows import as_
from workflows_app import services
from workflows_app.admin import facts
from workflows_app.models import Run, RunEvent, RunNode, Soul

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(
        User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def html(client: Client, path: str) -> str:
    response = client.get(f"/admin/{path}")
    assert response.status_code == 200
    return squeezed(response)


def test_a_list_is_called_what_it_lists_and_says_how_many_there_are(root: Client) -> None:
    add_rows("0")
    page = html(root, "workflows_app/auditentry/")
    assert "<h1>Audit log</h1>" in page and "Select audit" not in page
    assert f"{page.count('field-what')} in all" in page and "entries" not in page


def test_a_list_says_which_rows_a_page_shows_and_where_it_stops_counting(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = add_rows("0")
    Run.objects.bulk_create(
        Run(workflow=run.workflow, version=run.version, number=number, inputs={}) for number in range(2, 121)
    )
    assert "1 to 50 of 120<" in html(root, "workflows_app/run/")
    assert "101 to 120 of 120<" in html(root, "workflows_app/run/?p=3")
    monkeypatch.setattr(facts, "MOST_PAGED", 60)
    assert "51 to 60 of the first 60; search for others" in html(root, "workflows_app/run/?p=2")


def test_an_empty_list_says_so_and_leads_back(root: Client) -> None:
    assert "Nothing here yet." in html(root, "workflows_app/run/")
    add_rows("0")
    page = html(root, "workflows_app/run/?q=no+such+run&status__exact=pending")
    assert "Nothing here matches “<bdi>no such run</bdi>”" in page
    assert 'class="reset" href="?status__exact=pending"' in page  # the filter stays
    assert '<select name="action"' not in html(root, "workflows_app/workflow/?q=no+such+workflow")


def test_columns_and_filters_are_called_what_people_call_them(root: Client) -> None:
    run = add_rows("0")
    Run.objects.filter(pk=run.pk).update(source="api", eval_passed=False)
    RunEvent.objects.create(run=run, seq=2, event="node_eval_complete")
    runs, events = html(root, "workflows_app/run/"), html(root, "workflows_app/runevent/")
    assert ">API<" in runs and ">Api<" not in runs
    assert "<summary>Verdict</summary>" in runs and '<span class="said said--bad">Failed</span>' in runs
    assert "Eval passed" not in runs + html(root, "workflows_app/runnode/")
    assert ">Block evaluated<" in events and "Node Eval Complete" not in events
    assert "<span>Number</span>" in events and "<span>Time</span>" in events
    assert "<summary>Demo</summary>" in html(root, "workflows_app/workflow/")


def test_a_verdict_is_filtered_by_the_word_that_the_column_says(root: Client) -> None:
    passed, failed = add_rows("0"), add_rows("1")
    Run.objects.filter(pk=passed.pk).update(eval_passed=True)
    Run.objects.filter(pk=failed.pk).update(eval_passed=False)
    shown = root.get("/admin/workflows_app/run/").context["cl"]
    verdicts = next(spec for spec in shown.filter_specs if spec.title == "verdict")
    choices = {choice["display"]: choice["query_string"] for choice in verdicts.choices(shown)}
    assert list(choices) == ["All", "Passed", "Failed", "Not evaluated"]
    found = root.get(f"/admin/workflows_app/run/{choices['Failed']}").context["cl"].result_list
    assert [run.pk for run in found] == [failed.pk]


def test_yes_and_no_are_words_with_our_icons(root: Client) -> None:
    page = html(root, "auth/user/")
    assert "#check" in page and "</svg>Yes</span>" in page
    assert "icon-yes.svg" not in page and 'alt="True"' not in page


def test_the_audit_log_describes_actions_in_words_and_finds_them_by_word_and_name(root: Client) -> None:
    add_rows("0")
    page = html(root, "workflows_app/auditentry/")
    assert '<span title="workflow.save">Saved workflow</span>' in page
    assert "saved workflow" in html(root, "")
    for term in ("saved flow-0", "workflow.save flow-0"):
        found = root.get("/admin/workflows_app/auditentry/", {"q": term}).context["cl"].result_list
        assert [entry.action for entry in found] == ["workflow.save"], term


def test_a_page_shows_where_it_is(root: Client) -> None:
    run = add_rows("0")
    page = html(root, f"workflows_app/run/{run.pk}/history/")
    assert '<li><a href="/admin/workflows_app/run/">Runs</a></li>' in page
    assert f'<a href="/admin/workflows_app/run/{run.pk}/change/"><bdi>flow-0 #1</bdi></a>' in page
    assert '<a href="/admin/" aria-current="page">Admin</a>' in page


def test_a_role_cannot_be_saved_for_nothing_of_it_can_be_changed(root: Client) -> None:
    role, own = Group.objects.get(name="viewer"), Group.objects.create(name="of our own")
    assert 'name="_save"' not in html(root, f"auth/group/{role.pk}/change/")
    assert 'name="_save"' in html(root, f"auth/group/{own.pk}/change/")


def test_a_pin_without_run_or_version_is_refused_in_words(root: Client) -> None:
    page = squeezed(root.post("/admin/evals_app/pinnedbaseline/add/", {}))
    assert "Choose either a run or a version." in page and "Constraint" not in page


def test_only_those_who_may_edit_a_workflow_load_the_editor(root: Client) -> None:
    workflow = make_workflow()
    reader = as_("viewer")
    User.objects.filter(username="viewer").update(is_staff=True)
    page = f"workflows_app/workflow/{workflow.pk}/change/"
    assert "ace.js" in html(root, page) and "ace.js" not in html(reader, page)


def test_long_texts_and_lists_of_versions_are_shortened(root: Client) -> None:
    run = add_rows("long")
    text = "Überprüfen & <berichten>. " * 8000
    node = RunNode.objects.get(run=run)
    node.output, node.prompt, node.error = text, text, {"message": text}
    node.save()
    shown = f"The first {facts.MOST_CHARACTERS:,} of {len(text):,} characters"
    assert shown in html(root, f"workflows_app/runnode/{node.pk}/change/")
    soul = Soul.objects.get(slug="soul-long")
    for number in range(60):
        soul.system_prompt = f"Be brief. Round {number}.\n" + "Answer as a colleague would. " * 120
        services.save_soul(soul)
    assert html(root, f"workflows_app/soul/{soul.pk}/change/").count("/souls/soul-long/versions/") == 20


def test_no_list_offers_to_show_all_its_rows(root: Client) -> None:
    for number in range(120):
        User.objects.create_user(f"user{number}")
    page = html(root, "auth/user/")
    assert "?p=2" in page and "all=" not in page
    assert root.get("/admin/auth/user/?all=").context["cl"].result_list.count() == 50


@pytest.mark.parametrize(
    "query",
    [
        "workflows_app/run/?inputs__topic__regex=(a%2B)%2B%24",
        "workflows_app/run/?inputs__api_key__startswith=s",
        "workflows_app/run/?outputs__contains=x",
        "workflows_app/run/?status__contains=x",
        "workflows_app/run/?workflow__slug__regex=.",
        "workflows_app/runnode/?output__regex=.",
        "workflows_app/provider/?encrypted_key__startswith=a",
        "auth/user/?password__startswith=a",
        "axes/accessattempt/?post_data__regex=.",
        "evals_app/observation/?passed__in=1",
    ],
)
def test_a_list_is_filtered_by_what_it_offers_and_by_nothing_else(root: Client, query: str) -> None:
    answer = root.get(f"/admin/{query}")
    assert answer.status_code == 400


def test_a_list_by_date_still_opens_a_day(root: Client) -> None:
    assert (
        root.get("/admin/axes/accessattempt/?attempt_time__year=2026&attempt_time__month=1").status_code
        == 200
    )
