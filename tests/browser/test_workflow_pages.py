"""The journeys of a workflow's page in a real browser."""

import re

import pytest

from evals_app.demo import story
from evals_app.models import Regression
from tests.browser.sites import add_regressed
from tests.callers import user_in
from tests.evals.histories import add_history
from tests.factories import make_workflow
from workflows_app import services
from workflows_app.models import Run, Workflow

pytestmark = pytest.mark.needs("browser")


@pytest.fixture
def regressed(live_site, page, sign_in):
    """The demo's invoices after their planted change, with what it did on record."""
    sign_in(page, user_in("admin"))
    add_regressed()
    return page


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
    page.locator("h2#trend", has_text="Pass rate of the last 20 runs").wait_for()
    assert "metric=pass_rate" in page.url
    page.select_option("#trend-part select", "extract")
    page.locator("h2#trend code", has_text="extract").wait_for()
    page.locator("#trend-part .chart__plot .chart__typical").wait_for(state="attached")
    assert "block=extract" in page.url
    page.go_back()
    page.locator("h2#trend", has_text=re.compile(r"^\s*Pass rate of the last 20 runs\s*$")).wait_for()
    assert "metric=pass_rate" in page.url and "block=extract" not in page.url


def test_what_the_address_says_stays_while_the_trend_changes(regressed, live_site):
    page = regressed
    page.goto(f"{live_site}/workflows/{story.PLANTED}/?graph=all&versions=1")
    page.click("#trend-part >> text=Cost")
    page.locator("h2#trend", has_text="Cost per run").wait_for()
    assert page.url.endswith("?graph=all&versions=1&metric=cost")
    link = page.locator("#block-extract h3 a").get_attribute("href")
    assert link.endswith("?graph=all&versions=1&metric=cost&block=extract#trend")
    page.select_option("#trend-part select", "extract")
    page.locator("h2#trend code", has_text="extract").wait_for()
    assert "graph=all" in page.url and "versions=1" in page.url and "metric=cost" in page.url
    page.select_option("#trend-part select", "")
    page.locator("h2#trend code").wait_for(state="detached")
    assert "metric=cost" in page.url and "block=" not in page.url


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
        with page.expect_console_message(lambda message: "ERR_INTERNET_DISCONNECTED" in message.text):
            page.click(f"#trend-part >> text={metric}")
        page.locator(".toast", has_text="cannot be reached").wait_for()
    assert page.locator(".toast").count() == 1
    page.context.set_offline(False)
    page_faults[:] = [fault for fault in page_faults if "ERR_INTERNET_DISCONNECTED" not in fault]


def test_a_new_run_appears_without_a_reload(regressed, live_site):
    page = regressed
    with page.expect_websocket() as opened:
        page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    opened.value.wait_for_event("framereceived")
    run = services.start_run(Workflow.objects.get())
    row = page.locator(f'[data-feed] tr[data-run="{run.pk}"]')
    row.locator('.badge[data-word="completed"]').wait_for(timeout=15_000)


CHECK = "#editor-state"


def write(page, text: str) -> None:
    """Paste a text over the one in the editor."""
    page.locator(".editor-text .ace_text-input").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def type_first(page, text: str) -> None:
    """Type at the beginning of the text."""
    page.locator(".editor-text .ace_text-input").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type(text)


def test_one_pastes_a_workflow_sees_its_fault_saves_and_runs(live_site, page, sign_in):
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/workflows/")
    page.click("text=Start from your own file >> nth=0")
    text = page.input_value("#id_yaml")
    write(page, text.replace("word-count", "word-cuont"))
    page.locator(CHECK, has_text="word-cuont").wait_for()
    write(page, text)
    page.locator(CHECK, has_text="No errors").wait_for()
    page.fill("#id_slug", "analysis")
    page.click("text=Save and run")
    page.wait_for_url(f"{live_site}/workflows/analysis/run/")
    assert page.input_value("#page-id-input-topic") == "heat pumps for small offices"
    page.click("text=Start the run")
    page.wait_for_url(re.compile(r"/runs/"))


def test_what_was_typed_before_the_scripts_came_is_checked(live_site, page, sign_in, held):
    sign_in(page, user_in("admin"))
    release = held("**/editor*.js")
    page.goto(f"{live_site}/start/", wait_until="commit")
    page.fill("#id_yaml", page.input_value("#id_yaml").replace("word-count", "word-cuont"))
    release()
    page.locator(CHECK, has_text="word-cuont").wait_for()


def questions(page) -> list[str]:
    """What the browser asks before it leaves the page; it is made to stay."""
    asked = []

    def answer(dialog):
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", answer)
    return asked


@pytest.mark.parametrize("path", ["/start/", "/workflows/shout/edit/"])
def test_text_that_is_not_saved_is_not_left_without_a_question(live_site, page, sign_in, page_faults, path):
    make_workflow()
    sign_in(page, user_in("admin"))
    asked = questions(page)
    page.goto(live_site + path)
    page.click("nav >> text=Runs")
    page.wait_for_url("**/runs/")
    assert asked == []
    page.goto(live_site + path)
    type_first(page, "# typed ")
    with page.expect_event("dialog"):
        page.click("nav >> text=Runs", no_wait_after=True)
    assert asked == ["beforeunload"] and page.url == live_site + path
    write(page, "nonsense")
    page.click("button >> text=/^Save$/")
    page.locator("text=Not saved.").wait_for()
    assert asked == ["beforeunload"]  # saving asks nothing; what was refused is still not saved
    page.click("h1")
    with page.expect_event("dialog"):
        page.click("nav >> text=Runs", no_wait_after=True)
    page.click("text=Discard")
    page.wait_for_url(lambda url: not url.endswith(path))
    assert asked == ["beforeunload"] * 2
    page_faults[:] = [one for one in page_faults if "400 (Bad Request)" not in one]


def test_a_text_that_could_not_be_checked_is_not_called_valid(live_site, page, sign_in, page_faults):
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/start/")
    page.locator(CHECK, has_text="No errors").wait_for()
    page.context.set_offline(True)
    type_first(page, "broken: [")
    page.locator(CHECK, has_text="Not checked. The server cannot be reached.").wait_for()
    assert "No errors" not in page.locator(CHECK).inner_text()
    page.context.set_offline(False)
    page.click("text=Check it again")
    page.locator(CHECK, has_text="cannot be saved yet").wait_for()
    page_faults[:] = [one for one in page_faults if "ERR_INTERNET" not in one]
    page.context.clear_cookies()
    type_first(page, "x")
    page.locator(CHECK, has_text="Not checked.").wait_for()
    assert page.locator(f"{CHECK} form").count() == 0
    page_faults[:] = [one for one in page_faults if "403" not in one]


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


def test_a_text_is_not_lost_by_saving_it_while_the_server_is_away(live_site, page, sign_in, page_faults):
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/start/")
    page.fill("#id_slug", "analysis")
    page.context.set_offline(True)
    page.click("button >> text=/^Save$/")
    page.locator(".toast", has_text="Not saved").wait_for()
    assert page.input_value("#id_slug") == "analysis" and page.url == f"{live_site}/start/"
    page.context.set_offline(False)
    page.click("button >> text=/^Save$/")
    page.wait_for_url(f"{live_site}/workflows/analysis/")
    page_faults[:] = [one for one in page_faults if "ERR_INTERNET_DISCONNECTED" not in one]


def test_two_clicks_save_once(live_site, page, sign_in):
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/start/")
    page.fill("#id_slug", "analysis")
    page.dblclick("button >> text=/^Save$/")
    page.wait_for_url(f"{live_site}/workflows/analysis/")
    assert Workflow.objects.get().versions.count() == 1
