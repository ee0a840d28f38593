"""Pages that stay open while runs come and end: what they say goes on being true, and nobody is disturbed."""

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from tests.browser.test_run_live import WATCHED
from tests.callers import user_in
from tests.evals.histories import add_history, add_regression
from tests.factories import finish, make_workflow
from tests.timing import stays_the_same
from workflows_app import services
from workflows_app.live import consumers
from workflows_app.models import Workflow

pytestmark = pytest.mark.needs("browser")
expect.set_options(timeout=20_000)


@pytest.fixture
def watched(executor):
    return make_workflow(WATCHED, "watched")


@pytest.fixture
def admin(live_site, page, sign_in):
    sign_in(page, user_in("admin"))
    return page


def open_page(page, address: str) -> None:
    """Open it and wait until it hears of runs."""
    with page.expect_websocket() as opened:
        page.goto(address)
    opened.value.wait_for_event("framereceived")
    page.evaluate("window.isSamePage = true")


def test_rows_of_the_list_change_where_they_stand_and_new_runs_wait_to_be_shown(admin, live_site, watched):
    page = admin
    run = services.start_run(watched, {"pause": 2})
    open_page(page, f"{live_site}/runs/")
    row = page.locator(f'[data-run="{run.pk}"]')
    row.locator('.badge[data-word="running"]').wait_for()
    page.keyboard.press("j")
    page.keyboard.press("x")
    newer = services.start_run(watched)
    page.locator("#newer", has_text="1 new run · show").wait_for()
    expect(row.locator(".badge").first).to_have_text("Completed")
    expect(row.locator("[data-label=Verdict]")).to_contain_text("Passed")
    assert row.locator("[data-elapsed-since]").count() == 0
    assert page.locator("tbody tr").count() == 1
    assert page.locator("[data-select]:checked").count() == 1
    assert page.evaluate("document.activeElement.getAttribute('href')") == run.get_absolute_url()
    assert page.evaluate("window.isSamePage") is True
    finish(newer)
    page.click("#newer >> text=show")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("#newer")).to_be_empty()


def test_a_filtered_list_is_updated_only_by_runs_that_it_would_show(admin, live_site, watched):
    page = admin
    open_page(page, f"{live_site}/runs/?workflow=watched")
    finish(services.start_run(make_workflow()))
    services.start_run(watched)
    page.locator("#newer", has_text="1 new run · show").wait_for()


def test_a_workflow_that_is_looked_at_while_it_first_runs_says_what_is_true_in_every_part(
    admin, live_site, watched
):
    page = admin
    open_page(page, f"{live_site}/workflows/watched/")
    page.locator("h2", has_text="No runs yet").wait_for()
    facts = page.locator("#block-first .facts")
    expect(facts).to_contain_text("Runs0")
    page.locator("#runs").evaluate("heading => heading.scrollIntoView()")
    place = "document.getElementById('runs').getBoundingClientRect().top"
    was = page.evaluate(place)
    finish(services.start_run(watched, {"total": 7}))
    expect(page.locator("#block-second .facts")).to_contain_text("Runs1")
    expect(facts).to_contain_text("Runs1")
    expect(page.locator("#trend-part .chart__plot")).to_have_count(1)
    assert page.locator("h2", has_text="No runs yet").count() == 0
    expect(page.locator("[data-feed] tr[data-run] .badge").first).to_have_text("Completed")
    assert abs(page.evaluate(place) - was) < 2
    assert page.evaluate("window.isSamePage") is True


def test_an_open_workflow_shows_a_regression_as_it_is_found_and_keeps_what_one_types(
    admin, live_site, watched
):
    page = admin
    runs = add_history(watched, [1.0] * 5, block="first")
    open_page(page, f"{live_site}/workflows/watched/")
    page.locator("#trend-part .chart__plot").wait_for()
    assert page.locator(".alarm").count() == 0
    page.fill("#pin-run", "#4")
    page.evaluate("window.kept = document.getElementById('pin-run')")
    add_regression(runs[-1], block="first")
    finish(services.start_run(Workflow.objects.get()))
    page.locator(".alarm").wait_for()
    expect(page.locator("#regressions-section li")).to_have_count(1)
    assert page.evaluate("window.kept.isConnected && document.activeElement === window.kept") is True
    assert page.input_value("#pin-run") == "#4"


def test_what_one_picked_of_the_trend_stays_when_a_run_ends(admin, live_site, watched):
    page = admin
    add_history(watched, [1.0] * 5, block="first")
    open_page(page, f"{live_site}/workflows/watched/")
    page.click("#trend-part >> text=Cost")
    page.locator("h2#trend", has_text="Cost per run").wait_for()
    finish(services.start_run(Workflow.objects.get()))
    expect(page.locator("#trend-part .chart__plot desc")).to_contain_text("6 runs")
    expect(page.locator("h2#trend")).to_have_text("Cost per run")
    assert page.url.endswith("?metric=cost")
    assert "part=1" not in page.locator("#trend-part").inner_html()
    page.click("#trend-part >> text=Latency")
    page.locator("h2#trend", has_text="Latency per run").wait_for()


def test_what_came_while_one_was_picking_does_not_undo_the_pick(admin, live_site, watched):
    page = admin
    add_history(watched, [1.0] * 5, block="first")
    open_page(page, f"{live_site}/workflows/watched/")
    page.focus("#trend-part select")
    finish(services.start_run(Workflow.objects.get()))
    expect(page.locator("#block-first .facts")).to_contain_text("Runs6")
    page.select_option("#trend-part select", "first")
    page.locator("h2#trend code", has_text="first").wait_for()
    page.evaluate("document.activeElement.blur()")
    assert stays_the_same(page.locator("h2#trend").inner_text, 1.2)


def test_the_figures_of_the_dashboard_move_when_a_run_ends(admin, live_site, watched):
    page = admin
    open_page(page, f"{live_site}/")
    runs = page.locator(".figure", has_text=re.compile(r"^\s*Runs")).locator(".figure__value")
    expect(runs).to_have_text("0")
    services.start_run(watched)
    expect(runs).to_have_text("1")
    assert page.evaluate("window.isSamePage") is True


def test_the_dashboard_goes_on_while_a_button_has_the_focus(admin, live_site, watched):
    page = admin
    add_regression(add_history(watched, [1.0] * 5, block="first")[-1], block="first")
    open_page(page, f"{live_site}/")
    button = page.locator(".attention button")
    button.focus()
    run = services.start_run(Workflow.objects.get())
    page.locator(f'[data-feed] tr[data-run="{run.pk}"] .badge[data-word="completed"]').wait_for()
    expect(button).to_be_focused()


def test_who_is_logged_out_elsewhere_is_reported_and_led_to_the_log_in(
    admin, live_site, watched, monkeypatch
):
    monkeypatch.setattr(consumers, "PING_SECONDS", 0.3)
    monkeypatch.setattr(consumers, "ACCESS_SECONDS", 0.1)
    page = admin
    open_page(page, f"{live_site}/?range=24h")
    assert not page.locator("[data-connection]").is_visible()
    Session.objects.all().delete()
    expect(page.locator("[data-connection]")).to_contain_text("You are logged out; log in again")
    page.click("[data-connection] a")
    page.wait_for_url("**/login/?next=*")
    assert page.url.endswith("next=%2F%3Frange%3D24h")


def test_a_page_that_does_not_hear_of_the_end_does_not_count_on(admin, live_site, watched):
    page = admin
    run = services.start_run(watched, {"pause": 20})
    open_page(page, f"{live_site}/workflows/watched/")
    page.locator("[data-elapsed-since]").wait_for()
    page.goto(f"{live_site}/workflows/watched/versions/1/")
    elapsed = page.locator("[data-elapsed-since]")
    assert stays_the_same(elapsed.inner_text, 1.2)
    assert elapsed.inner_text() != "…"
    services.cancel_run(run)


def forget_offline(page_faults: list[str]) -> None:
    """A browser without a connection says so in its console."""
    page_faults[:] = [fault for fault in page_faults if "ERR_INTERNET_DISCONNECTED" not in fault]


def test_the_dashboards_range_is_picked_in_place_and_a_lost_server_takes_nothing_away(
    admin, live_site, page_faults
):
    page = admin
    add_history(make_workflow(), [1.0, 0.5])
    open_page(page, live_site)
    page.locator(".figure__value").first.wait_for()
    page.click("text=24h")
    page.locator("#ranges [aria-current]", has_text="24h").wait_for()
    assert page.url.endswith("/?range=24h") and page.evaluate("window.isSamePage") is True
    assert page.locator(".figure").count() == 4
    page.context.set_offline(True)
    page.click("text=30d")
    page.locator(".toast", has_text="cannot be reached").wait_for()
    page.context.set_offline(False)
    page.click("text=30d")
    page.locator("#ranges [aria-current]", has_text="30d").wait_for()
    page.go_back()
    page.locator("#ranges [aria-current]", has_text="24h").wait_for()
    forget_offline(page_faults)
