"""The library of souls."""

import pytest

from evals_app.models import Observation
from tests.callers import queries_of
from tests.evals.histories import add_history
from tests.evals.test_pages_dashboard import html, visitor
from tests.factories import make_workflow
from workflows_app import services
from workflows_app.models import Soul

pytestmark = pytest.mark.django_db
USING = """\
version: "1.0"
blocks:
  analyze: {type: llm, soul_ref: analyst, prompt: Analyse it.}
"""


def make_soul(prompt: str = "You analyse.", slug: str = "analyst") -> Soul:
    soul = Soul.objects.filter(slug=slug).first() or Soul(slug=slug, role="Analyst")
    soul.system_prompt = prompt
    return services.save_soul(soul)


def test_an_empty_library_explains_itself_and_has_one_button(admin_client):
    page = admin_client.get("/souls/").content.decode()
    assert "No souls in the library yet" in page and page.count("Add a soul") == 1


def test_a_soul_is_listed_with_where_it_is_used():
    make_soul()
    assert "nowhere" in html(visitor(), "/souls/")
    make_workflow(USING, slug="using")
    page = html(visitor(), "/souls/")
    assert 'href="/workflows/using/"' in page
    assert "No soul matches" in html(visitor(), "/souls/?q=nobody")


def test_a_soul_is_found_by_the_name_it_is_listed_under():
    services.save_soul(Soul(slug="clerk", name="Ada", system_prompt="You file."))
    assert "/souls/clerk/" in html(visitor(), "/souls/?q=ada")


def test_a_soul_that_never_ran_says_so_instead_of_an_empty_chart():
    make_soul()
    page = html(visitor(), "/souls/analyst/")
    assert "No block has run with it yet." in page and "chart__empty" not in page and "legend" not in page


def test_a_soul_tells_how_each_version_did():
    first = make_soul().version
    workflow = make_workflow(USING, slug="using")
    add_history(workflow, [1.0] * 4, block="analyze")
    Observation.objects.update(soul_version=first)
    second = make_soul("You analyse thoroughly.").version
    add_history(workflow, [0.5] * 4, block="analyze")
    Observation.objects.filter(soul_version="").update(soul_version=second)
    from evals_app.services import rebuild_statistics

    rebuild_statistics(workflow)
    page = html(visitor(), "/souls/analyst/")
    assert "You analyse thoroughly." in page
    assert f"Version change: {second[:7]}" in page
    rows = visitor().get("/souls/analyst/").context["versions"]
    assert [(row["version"], row["mean_score"]) for row in rows] == [(second, 0.5), (first, 1.0)]


def test_a_soul_written_in_a_document_is_not_the_one_in_the_library():
    make_soul()
    inline = (
        USING + "souls:\n  analyst: {role: Other, system_prompt: x, provider: demo, model_name: demo-small}\n"
    )
    make_workflow(inline, slug="own")
    assert "No workflow refers to it" in html(visitor(), "/souls/analyst/")


def test_the_queries_do_not_grow():
    make_soul()
    add_history(make_workflow(USING, slug="using"), [1.0], block="analyze")
    client = visitor()
    few = [queries_of(client, "/souls/"), queries_of(client, "/souls/analyst/")]
    for number in range(5):
        make_soul(f"Prompt {number}")
        make_soul(slug=f"other-{number}")
        add_history(make_workflow(USING, slug=f"using-{number}"), [1.0] * 5, block="analyze")
    assert [queries_of(client, "/souls/"), queries_of(client, "/souls/analyst/")] == few
