"""The journeys of a workflow's page in a real browser."""

import re

import pytest
from django.core.cache import cache

from evals_app.demo import story
from evals_app.models import Regression
from tests.browser.accessibility import serious_findings
from tests.callers import user_in
from tests.evals.histories import add_history, add_regression
from tests.evals.test_demo import newest_text
from tests.factories import make_workflow
from workflows_app import services
from workflows_app.models import Run, Workflow

pytestmark = pytest.mark.needs("browser")


@pytest.fixture
def regressed(live_site, page, sign_in):
    """The demo's invoices after their planted change, with what it did on record."""
    cache.clear()
    sign_in(page, user_in("admin"))
    workflow = make_workflow(story.first_text(story.PLANTED), slug=story.PLANTED, is_demo=True)
    add_history(workflow, [1.0] * 30, block="extract")
    version = services.save_version(story.PLANTED, newest_text(story.PLANTED), message="Explain yourself")
    runs = add_history(Workflow.objects.get(), [0.5, 1.0] * 6, block="extract", version=version)
    add_regression(runs[2], block="extract", assertion="is-json#1")
    return page


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_from_what_became_worse_to_a_run_going_red(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    assert "is-json" in page.locator(".alarm h2").inner_text()
    page.click("text=Run it now")
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))
    page.locator('.badge[data-word="failed"]').first.wait_for(timeout=10_000)
    run = Run.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])
    assert run.inputs["invoice_text"].startswith("Verdi Catering")


def test_a_regression_is_acknowledged_from_the_dashboard(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/")
    page.locator(".figure__value").first.wait_for()
    page.click("text=Acknowledge")
    page.locator(".toast", has_text="Acknowledged").wait_for()
    assert Regression.objects.get().state == "acknowledged"
    assert page.locator(".badge", has_text="Acknowledged").count() == 1


def test_the_trend_comes_after_the_page_and_switches_in_place(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    page.locator("#trend-part .chart__plot").wait_for()
    assert page.locator("#trend-part .chart__change").count() == 1
    page.click("#trend-part >> text=Pass rate")
    page.locator("h2#trend", has_text="Pass rate per run").wait_for()
    assert "metric=pass_rate" in page.url
    page.select_option("#trend-part select", "extract")
    page.locator("h2#trend code", has_text="extract").wait_for()
    page.locator("#trend-part .chart__band").wait_for(state="attached")
    assert "block=extract" in page.url
    page.go_back()
    page.locator("h2#trend", has_text=re.compile("^Pass rate per run$")).wait_for()
    assert "metric=pass_rate" in page.url and "block=extract" not in page.url


def test_a_click_beside_a_point_goes_to_its_run_even_where_it_became_worse(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/?metric=score#trend")
    worse = page.locator("#trend-part .chart__worse").first
    worse.scroll_into_view_if_needed()
    box = worse.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))


def test_a_switch_that_the_server_does_not_answer_says_so_once(regressed, live_site, page_faults):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    page.locator("#trend-part .chart__plot").wait_for()
    page.context.set_offline(True)
    for metric in ("Pass rate", "Cost"):
        page.click(f"#trend-part >> text={metric}")
        page.locator(".toast", has_text="cannot be reached").wait_for()
    assert page.locator(".toast").count() == 1
    page.context.set_offline(False)
    expected = ("ERR_INTERNET_DISCONNECTED", "htmx:sendError", "htmx:afterRequest")
    page_faults[:] = [fault for fault in page_faults if not any(one in fault for one in expected)]


def test_a_new_run_appears_without_a_reload(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    page.locator("[data-live-part] tr[data-run]").first.wait_for()
    page.wait_for_timeout(800)
    run = services.start_run(Workflow.objects.get())
    row = page.locator(f'[data-live-part] tr[data-run="{run.pk}"]')
    row.locator('.badge[data-word="completed"]').wait_for(timeout=15_000)


def test_one_pastes_a_workflow_sees_its_fault_saves_and_runs(live_site, page, sign_in):
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/workflows/")
    page.click("text=Start from your own file >> nth=0")
    text = page.input_value("#id-yaml")
    page.fill("#id-yaml", text.replace("word-count", "word-cuont"))
    page.locator("#faults .line--fault", has_text="word-cuont").wait_for()
    page.fill("#id-yaml", text)
    page.locator("#faults .note--good").wait_for()
    page.fill("#id-slug", "analysis")
    page.click("text=Save and run")
    page.wait_for_url(f"{live_site}/workflows/analysis/run/")
    assert page.input_value("#page-id-input-topic") == "heat pumps for small offices"
    page.click("text=Start the run")
    page.wait_for_url(re.compile(r"/runs/"))


PAGES = ["/", "/workflows/", f"/workflows/{story.PLANTED}/", f"/workflows/{story.PLANTED}/versions/2/",
         f"/workflows/{story.PLANTED}/run/", "/start/", "/souls/", "/souls/clerk/"]  # fmt: skip


def test_without_scripts_nothing_waits_and_the_trend_is_a_link_away(browser, live_site, sign_in):
    add_history(make_workflow(), [1.0, 0.5], block="shout")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/")
    assert page.locator(".skeleton:visible, .figure:visible").count() == 0
    page.goto(f"{live_site}/workflows/shout/")
    assert page.locator(".skeleton:visible").count() == 0
    assert page.locator(".button:visible", has_text="Run…").count() == 1
    page.click("a[href='?range=200#trend']")
    assert page.locator(".chart__plot").first.is_visible()
    context.close()


def test_every_page_is_accessible_in_both_themes_and_fits_a_phone_and_a_tablet(regressed, live_site):
    from tests.evals.test_pages_souls import make_soul

    make_soul(slug="clerk")
    page = regressed
    for path in PAGES:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(live_site + path)
        page.wait_for_load_state("networkidle")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert serious_findings(page) == [], path
        for width in (390, 768):
            page.set_viewport_size({"width": width, "height": 844})
            assert overflow(page) <= 0, (path, width)
