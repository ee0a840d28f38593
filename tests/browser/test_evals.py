"""Eval suites in a real browser: start one, see its verdict without a reload, compare, make a case."""

import pytest

from tests.browser.accessibility import serious_findings
from tests.callers import user_in
from tests.evals.pages.test_evals import BAD, GOOD
from tests.factories import finish, make_workflow, run_suite
from workflows_app import services
from workflows_app.models import Workflow

pytestmark = pytest.mark.needs("browser")


def test_a_suite_is_run_read_compared_and_gets_a_case(page, live_site, sign_in):
    run_suite(make_workflow(GOOD, slug="greeting"))
    make_workflow(BAD, slug="greeting")
    workflow = Workflow.objects.get(slug="greeting")
    run = finish(services.start_run(workflow, {"text": "hello"}))
    sign_in(page, user_in("admin"))
    page.goto(f"{live_site}/evals/greeting/")
    assert serious_findings(page) == []
    page.click("text=Run this suite")
    page.locator("#suite-run[data-done=yes] >> text=Output does not contain 'HELLO'.").first.wait_for()
    assert serious_findings(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("c")
    page.locator("text=1 case that passed fails now.").wait_for()
    assert serious_findings(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    sticking_out = "all => all.filter(one => one.offsetWidth > one.closest('td').clientWidth).length"
    assert page.locator("td .badge").evaluate_all(sticking_out) == 0
    page.goto(f"{live_site}/runs/{run.pk}/nodes/{run.nodes.get().pk}/")
    page.click("text=Make this an eval case")
    page.locator("table.diff").wait_for()
    page.emulate_media(color_scheme="dark")
    assert serious_findings(page) == []
    page.click("text=Save as version 3")
    page.locator("text=shout-run-1").first.wait_for()
    assert Workflow.objects.get(slug="greeting").current_version.number == 3
