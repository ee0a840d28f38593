"""The look in a real browser: themes, keyboard, charts, phone width, accessibility."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from tests.callers import user_in
from tests.factories import make_workflow
from workflows_app.display import formats

pytestmark = pytest.mark.needs("browser")


@pytest.fixture
def guide(page, live_site, sign_in):
    """The style guide, as a member of staff sees it."""
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.goto(f"{live_site}/styleguide/")
    return page


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_the_theme_follows_the_system_until_it_is_switched_and_the_choice_stays(guide):
    guide.emulate_media(color_scheme="light")
    light = background(guide)
    guide.emulate_media(color_scheme="dark")
    dark = background(guide)
    assert light != dark
    guide.click("details.menu > summary")
    guide.click('[data-theme-set="light"]')
    assert background(guide) == light
    guide.reload()
    assert background(guide) == light
    assert guide.get_attribute('[data-theme-set="light"]', "aria-pressed") == "true"


def test_a_phone_needs_no_sideways_scrolling(guide):
    guide.set_viewport_size({"width": 390, "height": 844})
    assert overflow(guide) <= 0
    assert (
        guide.locator("td[data-label=Status]").first.evaluate(
            "td => getComputedStyle(td, '::before').content"
        )
        == '"Status"'
    )


def test_the_keyboard_searches_moves_selects_and_helps(guide):
    guide.keyboard.press("/")
    assert guide.evaluate("document.activeElement.matches('[data-search]')")
    guide.keyboard.type("jk?")
    assert guide.input_value("[data-search]") == "jk?"
    guide.keyboard.press("Escape")
    guide.keyboard.press("j")
    guide.keyboard.press("j")
    assert "#411" in guide.evaluate("document.activeElement.closest('[data-row]').textContent")
    guide.keyboard.press("x")
    guide.keyboard.press("k")
    assert "#412" in guide.evaluate("document.activeElement.closest('[data-row]').textContent")
    assert guide.locator("[data-select]:checked").count() == 1
    guide.keyboard.press("?")
    assert guide.locator("#keyboard-help").is_visible()
    guide.keyboard.press("j")
    guide.keyboard.press("Escape")
    assert not guide.locator("#keyboard-help").is_visible()


def test_a_page_without_a_search_leads_to_that_of_the_workflows(page, live_site, sign_in):
    make_workflow()
    sign_in(page, user_in("viewer"))
    page.goto(f"{live_site}/workflows/shout/")
    page.keyboard.press("/")
    page.wait_for_url(f"{live_site}/workflows/#search")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("sho")
    assert page.input_value("[data-search]") == "sho"


def test_j_and_k_pass_over_rows_that_lead_nowhere(guide):
    guide.locator("[data-row-link]").nth(1).evaluate("link => link.removeAttribute('href')")
    guide.locator("a[data-row]").first.evaluate("row => row.removeAttribute('href')")
    names = []
    for key in "j" * 7 + "k":
        guide.keyboard.press(key)
        names.append(guide.evaluate("document.activeElement.closest('[data-row]').textContent"))
    assert "#411" not in "".join(names) and "analyze" not in "".join(names)
    assert len(set(names)) == 7 and names[-1] == names[-3]


def test_c_presses_the_compare_button(guide):
    guide.evaluate(
        "document.querySelector('[data-compare]').addEventListener('click', () => { window.compared = true })"
    )
    guide.keyboard.press("c")
    assert guide.evaluate("window.compared")


def test_hovering_a_chart_describes_the_nearest_run_and_arrows_walk_along(guide):
    plot = guide.locator(".chart__plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    guide.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.9)
    tip = guide.locator(".chart__tip")
    assert tip.inner_text().startswith("#51")
    guide.mouse.move(5, 5)
    assert tip.count() == 0
    plot.locator("a.mark:not([tabindex])").focus()
    assert tip.inner_text().startswith("#100")
    guide.keyboard.press("ArrowLeft")
    assert tip.inner_text().startswith("#99")
    assert plot.locator("a.mark:not([tabindex])").count() == 1


def test_toasts_and_the_connection_banner_come_and_go(guide):
    guide.evaluate("runsight.toast('<b>Saved</b>', 'success'); runsight.connection(true)")
    assert guide.locator("#toasts .toast").inner_text() == "<b>Saved</b>"
    assert guide.locator("[data-connection]").is_visible()
    guide.click("#toasts [data-dismiss]")
    guide.evaluate("runsight.connection(false)")
    assert guide.locator("#toasts .toast").count() == 0
    assert not guide.locator("[data-connection]").is_visible()


def test_tabs_and_menus_work_by_keyboard(guide):
    guide.focus("#sg-tab-1")
    guide.keyboard.press("ArrowRight")
    assert guide.locator("#sg-panel-2").is_visible() and not guide.locator("#sg-panel-1").is_visible()
    guide.click("details.menu > summary")
    guide.keyboard.press("Escape")
    assert not guide.locator(".menu__panel").is_visible()


def test_times_read_the_same_in_the_browser_as_on_the_server(guide):
    before = guide.locator("#sg-words").locator("xpath=..").locator("time").all_inner_texts()
    guide.evaluate("document.dispatchEvent(new Event('runsight:swap'))")
    after = guide.locator("#sg-words").locator("xpath=..").locator("time").all_inner_texts()
    assert before[2:] == after[2:] == ["3 min ago", "2h ago", "4d ago", *after[5:]]
    assert len(after) == 6
    # A clock in whole seconds reads as how long something took.
    guide.evaluate("document.body.insertAdjacentHTML('beforeend', '<b id=clock data-elapsed-since></b>')")
    for seconds in (60, 125, 3600, 3780, 86400, 187_200):
        since = timezone.now() - timedelta(seconds=seconds, milliseconds=200)
        guide.evaluate(
            """since => {
                document.getElementById("clock").dataset.elapsedSince = since;
                document.dispatchEvent(new Event("runsight:swap"));
            }""",
            since.isoformat(),
        )
        assert guide.inner_text("#clock") == formats.duration(seconds * 1000)


def test_the_admin_wears_our_colours(page, live_site, sign_in):
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.goto(f"{live_site}/admin/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 245, 241)"
    assert page.locator(".brand img").is_visible()


def test_on_a_phone_a_change_list_of_the_admin_is_a_list(page, live_site, sign_in):
    make_workflow(slug="a-name-that-is-rather-long-for-the-width-of-a-phone")
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{live_site}/admin/workflows_app/workflow/")
    rows = page.locator("#changelist .results")
    assert rows.evaluate("rows => rows.scrollWidth - rows.clientWidth") <= 0
    cell = page.locator("td.field-version_number")
    assert cell.evaluate("td => getComputedStyle(td, '::before').content") == '"Version"'


def test_the_api_docs_wear_our_colours_by_night_too(page, live_site, sign_in):
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.emulate_media(color_scheme="dark")
    page.goto(f"{live_site}/api/docs/")
    page.locator(".opblock").first.wait_for()
    assert background(page) == "rgb(18, 19, 22)"
    block = page.locator(".opblock-get").first
    assert block.evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(26, 28, 32)"


def test_a_phone_shows_where_in_the_navigation_a_page_is(page, live_site, sign_in):
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{live_site}/evals/")
    box = page.locator(".nav [aria-current]").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate("scrollY") == 0
