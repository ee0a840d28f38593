"""The library of souls."""

import pytest

from evals_app.models import Observation
from tests.callers import queries_of
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_dashboard import html, visitor
from tests.factories import make_workflow
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import Run, RunNode, Soul

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
    page = squeezed(admin_client.get("/souls/"))
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


@pytest.mark.storage
def test_a_soul_shows_how_each_version_did():
    first = make_soul().version
    workflow = make_workflow(USING, slug="using")
    add_history(workflow, [1.0] * 4, block="analyze")
    Observation.objects.update(soul_version=first)
    second = make_soul("You analyse thoroughly.").version
    add_history(workflow, [0.5] * 4, block="analyze")
    Observation.objects.filter(soul_version="").update(soul_version=second)
    from evals_app.services.observation import rebuild_statistics

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


def test_a_version_is_shown_beside_the_one_before_it():
    first = make_soul().version
    second = make_soul("You analyse thoroughly.").version
    page = html(visitor(), "/souls/analyst/")
    assert f'href="versions/{second}/"' in page and f'href="versions/{first}/"' in page
    page = html(visitor(), f"/souls/analyst/versions/{second}/")
    assert f"What changed since version {first[:7]}" in page
    assert "<ins> thoroughly</ins>" in page and "unchanged line" in page
    assert f'href="/souls/analyst/versions/{first}/" rel="prev"' in page
    page = html(visitor(), f"/souls/analyst/versions/{first}/")
    assert "The first version" in page and "You analyse." in page and "Model: demo-small" in page
    text = html(visitor(), f"/souls/analyst/versions/{first}/soul.txt")
    assert text.startswith("Role: Analyst\n") and text.endswith("You analyse.")
    assert visitor().get("/souls/analyst/versions/nothing/").status_code == 404


def suspect_soul(version: str, soul: str) -> None:
    """A regression of a block that asked this soul, of which that version is suspected."""
    run = add_history(make_workflow(USING, slug="using"), [1.0] * 3, block="analyze")[-1]
    RunNode.objects.create(run=run, node_id="analyze", block_type="llm", soul_id=soul, soul_version=version)
    add_regression(run, "analyze", suspected={"workflow_version": None, "soul_version": version})


def test_a_suspected_version_of_a_soul_leads_to_what_changed_in_it():
    make_soul()
    version = make_soul("You guess.").version
    suspect_soul(version, "analyst")
    run = Run.objects.latest("number")
    for path in ("/", "/workflows/using/", f"/runs/{run.pk}/"):
        page = html(visitor(), path)
        assert f'href="/souls/analyst/versions/{version}/"' in page, path
    assert "It began with <a" in html(visitor(), "/workflows/using/")


@pytest.mark.parametrize("soul", ["analyst", "own"])
def test_a_suspected_version_of_a_soul_that_a_document_brings_leads_nowhere(soul):
    version = make_soul().version
    suspect_soul(version if soul == "own" else "f" * 12, soul)
    assert "/souls/" not in html(visitor(), "/").split("Running now")[0].split("<main")[1]


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
