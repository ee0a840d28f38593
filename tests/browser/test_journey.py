"""The journey all of it is for: from the log-in form to a regression that somebody has seen."""

import re

import pytest
from playwright.sync_api import expect

from evals_app.demo import story
from evals_app.models import Regression
from tests.browser.sites import add_regressed
from tests.callers import user_in
from tests.factories import finish
from workflows_app import services

pytestmark = pytest.mark.needs("browser")


def test_log_in_run_watch_open_the_failure_compare_and_acknowledge(page, live_site, monkeypatch):
    workflow = add_regressed()
    passed = finish(services.start_run(workflow, version=workflow.versions.get(number=1)))
    assert passed.eval_passed
    slow = {"demo-small": (3000.0, 0.0)}  # milliseconds, so that there is something to watch
    monkeypatch.setattr("workflows_app.engine.providers.demo.MODELS", slow)
    user = user_in("operator")
    user.set_password("a long pass phrase")
    user.save()

    page.goto(f"{live_site}/workflows/{story.PLANTED}/")
    page.fill("[name=username]", "operator")
    page.fill("[name=password]", "a long pass phrase")
    page.click("button >> text=Log in")
    expect(page.locator(".alarm h2")).to_contain_text("is-json")

    page.click("text=Run it now")
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))
    page.evaluate("window.isSamePage = true")
    for block, word, status in (
        ("extract", "Running", "running"),
        ("extract", "Failed", "failed"),
        ("check_totals", "Passed", "completed"),
        ("booking_text", "Passed", "completed"),
    ):
        expect(page.locator(f'[data-block="{block}"] .node-row__state')).to_have_text(word, timeout=20_000)
        drawn = page.locator(f'.graph [data-node-id="{block}"]')
        expect(drawn).to_have_attribute("data-status", status)
    expect(page.locator("h1 ~ .badge").first).to_have_text("Completed", timeout=20_000)
    assert page.evaluate("window.isSamePage")

    page.click('[data-block="extract"]')
    expect(page.locator(".inspector .assertion--failed").first).to_contain_text("is-json")
    page.click(f"text=Compare with #{passed.number}")
    page.wait_for_url(f"**/compare/{passed.pk}/")
    expect(page.locator(".flip--worse").first).to_contain_text("is-json")

    page.click(f"nav.breadcrumb >> text={story.PLANTED} #{passed.number + 1}")
    page.locator(".page-head__up").click()
    page.locator(".alarm").get_by_text("Acknowledge", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Acknowledged")
    expect(page.locator(".alarm .badge")).to_have_text("Acknowledged by operator")
    found = Regression.objects.get()
    assert (found.state, found.acknowledged_by) == ("acknowledged", user)
