"""The dashboard: figures, what needs attention, what runs now."""

import re

import pytest
from django.test import Client

from evals_app.models import Regression
from tests.callers import queries_of, user_in
from tests.evals.histories import add_history, add_regression
from tests.factories import make_workflow
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import Run

pytestmark = pytest.mark.django_db


def visitor(role: str = "operator") -> Client:
    client = Client()
    client.force_login(user_in(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


def html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return squeezed(response)


def test_an_empty_site_teaches_one_action():
    page = html(visitor("editor"), "/")
    assert "Start from your own file" in page and "?range=" not in page
    looking = html(visitor("viewer"), "/")
    assert 'href="/start/"' not in looking and "paste its YAML" not in looking
    assert "ask somebody" in looking


def test_the_figures_come_after_the_page_and_with_a_range_in_it():
    add_history(make_workflow(), [1.0, 1.0, 0.5, 1.0])
    assert 'data-load="/dashboard/figures/?range=7d"' in html(visitor(), "/")
    for path in ("/dashboard/figures/?range=24h", "/?range=24h"):
        page = html(visitor(), path)
        assert "75%" in page
        assert "0.88" in page
        assert "$0.0080" in page
    assert "nothing to compare with" in page


def test_a_dashboard_that_is_open_asks_for_new_figures_with_the_page():
    make_workflow()
    page = html(visitor(), "/?part=1")
    assert 'class="figure__value">0<' in page and "skeleton" not in page


@pytest.mark.parametrize(
    "path", ["/", "/runs/", "/workflows/", "/workflows/shout/", "/workflows/shout/versions/1/"]
)
def test_a_row_of_a_table_has_as_many_cells_as_its_head(path):
    add_history(make_workflow(), [1.0, 0.5])
    tables = re.findall(r"<table.*?</table>", html(visitor("editor"), path))
    assert tables
    for table in tables:
        head, *rows = (len(re.findall("<t[hd]", row)) for row in re.findall(r"<tr.*?</tr>", table))
        assert rows and set(rows) == {head}, table


def test_an_unknown_range_falls_back():
    make_workflow()
    assert 'range=7d" aria-current="true"' in html(visitor(), "/?range=lots")


def test_a_run_that_failed_is_reported_once():
    run = add_history(make_workflow(), [1.0])[-1]
    Run.objects.update(status="failed", error={"message": "Took 30 s."})
    attention = html(visitor(), "/").split("Running now")[0]
    assert "shout #1 failed: Took 30 s." in attention
    assert attention.count(f'href="/runs/{run.pk}/"') == 1 and ">Run #1</a>" not in attention


def test_a_regression_is_reported_with_its_links_and_a_button_for_those_who_may():
    run = add_history(make_workflow(), [1.0, 0.5])[-1]
    regression = add_regression(run)
    page = html(visitor(), "/")
    assert "<code>shout</code> in shout: <code>contains</code> passed 98%, now 61% since version 1" in page
    assert f'href="/runs/{run.pk}/"' in page
    assert 'href="/workflows/shout/versions/1/"' in page
    assert "evidence strong" in page
    assert f'action="/regressions/{regression.pk}/acknowledge/"' in page
    assert "/acknowledge/" not in html(visitor("viewer"), "/")


def test_a_regression_says_where_it_began_and_where_it_was_found():
    began, found = add_history(make_workflow(), [1.0, 0.5])
    add_regression(found, since_run=began, since_run_number=began.number)
    page = html(visitor(), "/").split("Running now")[0]
    assert f'<a href="/runs/{began.pk}/">Began at #1</a>' in page
    assert f'<a href="/runs/{found.pk}/">Found at #2</a>' in page


@pytest.mark.storage
def test_what_needs_attention_is_counted_in_full_and_the_rest_has_a_link():
    runs = add_history(make_workflow(), [1.0] * 8)
    for place in range(28):
        add_regression(
            runs[0], f"b{place:02}", evidence=50 - place, state="acknowledged" if place < 3 else "open"
        )
    page = html(visitor(), "/").split("Running now")[0]
    assert 'badge--count">28</span>' in page
    assert 'href="/workflows/?state=regressed">13 more regressions</a>' in page
    assert "more run" not in page
    Run.objects.filter(pk__in=[run.pk for run in runs[1:]]).update(status="failed", error={"message": "Oh."})
    page = html(visitor(), "/").split("Running now")[0]
    assert 'badge--count">35</span>' in page
    assert page.count("failed: Oh.") == 1 and "shout #8 failed" in page  # of those alike the newest
    assert 'href="/runs/?workflow=shout&amp;status=failed">7 times in 24 hours</a>' in page
    assert ">14 more regressions</a>" in page and "more run" not in page
    for run in runs[1:]:
        Run.objects.filter(pk=run.pk).update(error={"message": f"Oh: {run.number}."})
    page = html(visitor(), "/").split("Running now")[0]
    assert page.count("failed: Oh") == 3 and "shout #8 failed" in page  # the newest have room
    assert ">16 more regressions</a>" in page
    assert 'href="/runs/?status=failed">4 more runs that failed in the last 24 hours</a>' in page


def test_what_nobody_looks_after_comes_first():
    runs = add_history(make_workflow(), [1.0] * 2)
    add_regression(runs[0], "seen", evidence=90, state="acknowledged")
    add_regression(runs[0], "weak", evidence=7)
    add_regression(runs[0], "strong", evidence=70)
    Run.objects.filter(pk=runs[1].pk).update(status="failed", error={"message": "Oh."})
    for path in ("/", "/workflows/shout/"):
        page = html(visitor(), path).split('id="versions"')[0]
        words = ["<code>strong</code> in", "<code>weak</code> in", "failed: Oh.", "<code>seen</code> in"]
        places = [page.index(word) for word in words if word in page]
        assert places == sorted(places) and len(places) == (4 if path == "/" else 3)


def test_acknowledging_goes_back_to_the_dashboard_and_says_so():
    regression = add_regression(add_history(make_workflow(), [1.0])[-1])
    response = visitor().post(f"/regressions/{regression.pk}/acknowledge/", {"next": "/"}, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "Acknowledged" in squeezed(response)
    assert Regression.objects.get().state == "acknowledged"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_a_form_never_leads_to_another_site(elsewhere):
    regression = add_regression(add_history(make_workflow(), [1.0])[-1])
    response = visitor().post(f"/regressions/{regression.pk}/resolve/", {"next": elsewhere})
    assert response["Location"] == "/workflows/shout/#regressions"


def test_a_run_in_progress_shows_how_far_it_is():
    run = services.start_run(make_workflow())
    page = html(visitor(), "/dashboard/now/")
    assert f'id="running-{run.pk}"' in page
    assert "0 of 1 blocks" in page


def test_a_run_from_the_past_of_the_demo_does_not_run_now():
    demo = make_workflow(is_demo=True)
    demo_run = services.start_held_run(demo, {}, external_id="demo-1").run
    started = services.start_run(demo)
    page = html(visitor(), "/dashboard/now/")
    assert f'id="running-{demo_run.pk}"' not in page
    assert f'id="running-{started.pk}"' in page


def test_the_demo_says_that_it_is_one():
    make_workflow(is_demo=True)
    assert "Demo data." in html(visitor(), "/")


def test_names_are_text_and_not_markup():
    workflow = make_workflow(is_demo=True)
    workflow.name = "<b>bold</b>"
    workflow.save()
    add_regression(add_history(workflow, [1.0])[-1], node_id="<i>x</i>")
    page = html(visitor(), "/")
    assert "<i>x</i>" not in page
    assert "&lt;i&gt;x&lt;/i&gt;" in page


def test_the_number_of_queries_does_not_grow_with_what_is_stored():
    runs = add_history(make_workflow(), [1.0])
    add_regression(runs[0])
    client = visitor()
    few = queries_of(client, "/")
    for number in range(12):
        workflow = make_workflow(slug=f"more-{number}")
        add_regression(add_history(workflow, [1.0, 0.5] * 5)[-1])
        services.start_run(workflow)
    assert queries_of(client, "/") == few + 1  # the versions of what is running
    rows = "&".join(f"run={run.pk}" for run in Run.objects.all())
    assert queries_of(client, f"/dashboard/now/?{rows}") <= 6  # who asks, and the rows with their versions


@pytest.mark.storage
def test_a_dashboard_that_is_open_asks_for_the_rows_of_runs_that_go_on():
    workflow = make_workflow()
    (over,) = add_history(workflow, [1.0])
    run = services.start_run(workflow)
    address = f"/dashboard/now/?run={run.pk}&run={over.pk}"
    rows = visitor().get(address).content.decode()
    assert re.findall(r'id="(run\w*)-', rows) == ["running", "run", "run"] and "section" not in rows
    assert "attention-section" in visitor().get(f"{address}&all=1").content.decode()
    assert visitor().get("/dashboard/now/?run=none").status_code == 404


@pytest.mark.storage
def test_runs_that_did_not_pass_are_not_called_nothing():
    runs = add_history(make_workflow(), [1.0, 1.0])
    assert "Nothing needs attention" in html(visitor(), "/")
    for failed, verdict, words in (
        (1, "failed", "1 run did not pass"),
        (0, "error", "1 could not be checked"),
    ):
        Run.objects.filter(pk=runs[0].pk).update(eval_passed=False, assertions_failed=failed)
        page = html(visitor(), "/")
        assert f'href="/runs/?verdict={verdict}">{words}</a>' in page
        assert "Nothing needs attention" not in page
        assert runs[0].get_absolute_url() in html(visitor(), f"/runs/?verdict={verdict}")


@pytest.mark.storage
def test_a_run_that_failed_has_not_passed_and_a_cancelled_one_does_not_count():
    runs = add_history(make_workflow(), [1.0, 1.0, 1.0, 1.0])
    for run, status in zip(runs, ("failed", "cancelled"), strict=False):
        Run.objects.filter(pk=run.pk).update(status=status)
    assert ">67%<" in html(visitor(), "/dashboard/figures/?range=24h")
    assert ">67%<" in html(visitor(), "/workflows/")
    Run.objects.filter(status="completed").update(eval_passed=None)
    assert ">50%<" not in html(visitor(), "/workflows/")
