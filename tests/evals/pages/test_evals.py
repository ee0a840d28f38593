"""The pages of eval suites: lists, one evaluation, two compared, and a case made from what ran."""

import pytest

from evals_app.suites import history as suite_history
from tests.callers import queries_of, user_in
from tests.factories import make_workflow, run_now, run_suite
from tests.html import squeezed
from tests.timing import wait_until
from workflows_app.models import Workflow

CASES = """\
version: "1.0"
blocks:
  shout:
    type: code
    code: |
      def main(data):
          return data["inputs"]["text"].upper()
    assertions:
      - {type: contains, value: HELLO}
interface:
  inputs:
    - {name: text, type: string, default: hello}
eval:
  threshold: 0.9
  cases:
"""


def case(name: str, output: str, value: str = "HELLO") -> str:
    return (
        f"    - id: {name}\n      description: About {name}.\n      fixtures: {{shout: {output!r}}}\n"
        f"      expected:\n        shout:\n          - {{type: contains, value: {value}}}\n"
        "          - {type: word-count, value: {max: 3}}\n"
    )


GOOD = CASES + case("greets", "HELLO YOU") + case("parts", "HELLO AND BYE")
BAD = CASES + case("greets", "GOODBYE") + case("parts", "HELLO AND BYE") + case("new", "HELLO")


@pytest.fixture
def evaluated(transactional_db):
    """A workflow whose suite passed at version 1 and fails at version 2."""
    workflow = make_workflow(GOOD, slug="greeting")
    run_suite(workflow)
    make_workflow(BAD, slug="greeting")
    run_suite(Workflow.objects.get(slug="greeting"), user_in("operator"))
    return Workflow.objects.get(slug="greeting")


@pytest.fixture
def as_role(client):
    def sign_in(role):
        client.force_login(user_in(role))
        return client

    return sign_in


def html(response) -> str:
    assert response.status_code == 200
    return squeezed(response)


def latest(workflow):
    return workflow.eval_suite_runs.order_by("-started_at").first()


def test_suites_are_listed_with_verdict_and_history(as_role, evaluated):
    make_workflow(slug="caseless")
    page = html(as_role("viewer").get("/evals/"))
    assert 'href="/evals/greeting/"' in page and "caseless" not in page
    assert "2 of 3" in page
    assert "greeting: passed in 1 of the last 2" in page
    assert "Run <span" not in page  # a viewer starts nothing
    assert "Run <span" in html(as_role("operator").get("/evals/"))


def test_without_cases_the_list_teaches_how_to_make_one(as_role, transactional_db):
    page = html(as_role("viewer").get("/evals/"))
    assert "No eval cases yet" in page and "nothing has run yet" in page and "Choose a run" not in page
    run_now(make_workflow(slug="caseless"))
    assert "Choose a run" in html(as_role("viewer").get("/evals/"))


def test_a_suite_shows_each_case_over_time_and_its_evaluations(as_role, evaluated):
    page = html(as_role("viewer").get("/evals/greeting/"))
    assert "greets: passed in 1 of the last 2" in page
    assert "parts: passed in 2 of the last 2" in page
    assert "About new." in page
    assert page.count('name="run"') == 2
    assert "Run this suite" not in page
    assert as_role("viewer").get("/evals/none/").status_code == 404


def test_a_suite_never_evaluated_and_one_without_cases_are_shown(as_role, db):
    make_workflow(GOOD, slug="greeting")
    make_workflow(slug="caseless")
    client = as_role("operator")
    assert "Not evaluated yet" in html(client.get("/evals/"))
    assert "Not tried yet" in html(client.get("/evals/greeting/"))
    assert "No cases yet" in html(client.get("/evals/caseless/"))
    assert client.post("/evals/caseless/start/")["Location"] == "/evals/caseless/"


def test_an_evaluation_opens_the_failing_case_with_expected_and_measured(as_role, evaluated):
    path = latest(evaluated).get_absolute_url()
    page = html(as_role("viewer").get(path))
    opened = page[: page.index("All cases")]
    assert "Output does not contain &#x27;HELLO&#x27;." in opened and "GOODBYE" in opened
    assert 'id="case-0"' in opened and 'id="case-1"' not in opened
    rows = page[page.index("All cases") :]
    assert rows.index(">greets<") < rows.index(">parts<") < rows.index(">new<")
    asked = html(as_role("viewer").get(path + "?case=parts"))
    assert 'id="case-1"' in asked and "HELLO AND BYE" in asked
    part = html(as_role("viewer").get(path + "?part=1"))
    assert part.lstrip().startswith('<div id="suite-run"') and 'data-done="yes"' in part


def test_two_evaluations_are_compared_flips_first(as_role, evaluated):
    before, after = evaluated.eval_suite_runs.order_by("started_at")
    client = as_role("viewer")
    chosen = client.get("/evals/greeting/compare/", {"run": [str(after.pk), str(before.pk)]})
    assert chosen["Location"] == f"/evals/runs/{after.pk}/compare/{before.pk}/"
    page = html(client.get(chosen["Location"]))
    assert "1 case that passed fails now." in page
    assert page.index(">greets<") < page.index(">new<") < page.index(">parts<")
    assert client.get("/evals/greeting/compare/", {"run": str(after.pk)})["Location"] == "/evals/greeting/"
    assert client.get("/evals/greeting/compare/?run=x&run=y").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_an_operator_starts_a_suite_and_a_viewer_does_not(as_role, evaluated):
    count = evaluated.eval_suite_runs.count()
    assert as_role("viewer").post("/evals/greeting/start/").status_code == 403
    assert evaluated.eval_suite_runs.count() == count
    response = as_role("operator").post("/evals/greeting/start/")
    assert response["Location"] == latest(evaluated).get_absolute_url()
    assert evaluated.eval_suite_runs.count() == count + 1
    wait_for(latest(evaluated))


def wait_for(suite_run):
    """Let the background thread end before its tables go."""
    wait_until(lambda: type(suite_run).objects.get(pk=suite_run.pk).finished_at, "the end of the suite")


def test_a_node_becomes_a_case_after_its_change_was_looked_at(as_role, transactional_db):
    workflow = make_workflow()
    node = run_now(workflow, {"text": "hello world"}).nodes.get()
    path = f"/runs/{node.run_id}/nodes/{node.pk}/case/"
    assert as_role("operator").get(path).status_code == 403
    client = as_role("admin")
    page = html(client.get(path, {"id": "my-case"}))
    assert "my-case" in page and 'class="diff"' in page and "Save as version 2" in page
    assert workflow.versions.count() == 1
    form = {"id": "my-case", "based_on": "1"}
    assert as_role("editor").post(path, form).status_code == 403  # the document has code
    assert as_role("admin").post(path, form)["Location"] == "/evals/shout/"
    saved = Workflow.objects.get(slug="shout").current_version
    assert saved.number == 2 and "id: my-case" in saved.yaml
    assert "Make this an eval case" in html(client.get(f"/runs/{node.run_id}/nodes/{node.pk}/"))


def test_a_change_that_was_not_looked_at_is_shown_and_not_saved(as_role, transactional_db):
    workflow = make_workflow()
    node = run_now(workflow, {"text": "hello world"}).nodes.get()
    make_workflow(workflow.current_version.yaml + "\n# touched\n")
    path = f"/runs/{node.run_id}/nodes/{node.pk}/case/"
    page = html(as_role("admin").post(path, {"id": "late", "based_on": "1"}))
    assert "The workflow was saved meanwhile." in page
    assert workflow.versions.count() == 2
    bad = html(as_role("admin").get(path, {"id": "not an id!"}))
    assert "The document would have errors." in bad


def test_queries_do_not_grow_with_suites_cases_or_evaluations(as_role, evaluated):
    client = as_role("operator")
    paths = ["/evals/", "/evals/greeting/", latest(evaluated).get_absolute_url()]
    before, after = evaluated.eval_suite_runs.order_by("started_at")
    paths.append(f"/evals/runs/{after.pk}/compare/{before.pk}/")
    few = [queries_of(client, path) for path in paths]
    more = BAD + "".join(case(f"more-{n}", "NO") for n in range(8))
    make_workflow(more, slug="greeting")
    for slug in ("greeting", "other"):
        workflow = make_workflow(more, slug=slug)
        for _ in range(3):
            run_suite(workflow)
    paths[2] = latest(evaluated).get_absolute_url()
    paths[3] = f"/evals/runs/{latest(evaluated).pk}/compare/{before.pk}/"
    assert [queries_of(client, path) for path in paths] == few
    assert max(few) <= 12


def test_every_page_about_a_demo_suite_says_that_it_is_a_demo(as_role, evaluated):
    client, after = as_role("editor"), latest(evaluated)
    before = suite_history.previous_of(after)
    run_url = after.get_absolute_url()
    for is_demo in (True, False):
        Workflow.objects.update(is_demo=is_demo)
        for path in ("/evals/", "/evals/greeting/", run_url, f"{run_url}compare/{before.pk}/"):
            assert ("Demo data." in html(client.get(path))) == is_demo, path
