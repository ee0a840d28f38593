"""What holds for each page of the site, empty, with rows and with names as long as they may be."""

import pytest

from tests.browser.accessibility import OF_COLOUR, SERIOUS, findings
from tests.browser.layout import badly_laid_out
from tests.browser.sites import EMPTY, small_site
from tests.callers import user_in
from tests.evals.crowded import MANY, block_id, crowded_site, slug_of

pytestmark = pytest.mark.needs("browser")
DESK, TABLET, PHONE = ({"width": width, "height": 844} for width in (1280, 768, 390))


@pytest.fixture
def admin(page, live_site, sign_in, page_faults):
    """A page of somebody who may do everything, so that each button is there."""
    sign_in(page, user_in("admin"))
    yield page
    page_faults[:] = [fault for fault in page_faults if "/nothing/here/" not in fault]


def visit(page, address: str) -> None:
    page.goto(address)
    page.locator("[data-load]:not(.block__chart) .skeleton").first.wait_for(state="detached")


def sideways(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def faults(page, live_site: str, paths: list[str]) -> dict[str, list[str]]:
    """What axe finds at a desk and on a phone, by day and by night, and where a page scrolls sideways."""
    found = {}
    for path in paths:
        visit(page, live_site + path)
        for size in (DESK, TABLET, PHONE):
            page.set_viewport_size(size)
            place = f"{path} {size['width']}"
            found[place] = [f"{sideways(page)} px too wide"] if sideways(page) > 0 else []
            for scheme, rules in () if size is TABLET else (("light", ()), ("dark", OF_COLOUR)):
                page.emulate_media(color_scheme=scheme)
                found[f"{place} {scheme}"] = findings(page, rules=rules)
    return {place: one for place, one in found.items() if one}


def test_every_page_of_an_empty_site_is_accessible_and_fits(admin, live_site):
    assert faults(admin, live_site, EMPTY) == {}


def test_every_page_with_rows_is_accessible_and_fits(admin, live_site):
    assert faults(admin, live_site, small_site()) == {}


def test_what_everybody_sees_is_accessible_and_fits(page, live_site):
    assert faults(page, live_site, ["/login/"]) == {}


def test_axe_finds_nothing_serious_in_the_api_docs(admin, live_site):
    admin.goto(f"{live_site}/api/docs/")
    admin.locator(".opblock").first.wait_for()
    admin.locator(
        ".json-schema-2020-12-expand-deep-button"
    ).last.wait_for()  # the shapes come after the calls
    assert findings(admin, impacts=SERIOUS) == []
    admin.emulate_media(color_scheme="dark")
    assert findings(admin, impacts=SERIOUS, rules=OF_COLOUR) == []


def test_no_name_however_long_leaves_its_place(admin, live_site):
    paths = crowded_site(3)
    unbroken = slug_of(MANY)
    found = {}
    for path in paths:
        visit(admin, live_site + path)
        if path == "/assertions/":
            admin.select_option("#lab-workflow", unbroken)
            admin.select_option("#lab-block", block_id(0))
            admin.click("#lab-backtest")
            admin.locator("#lab-report .figure").first.wait_for()
        for size in (DESK, PHONE):
            admin.set_viewport_size(size)
            admin.evaluate("document.querySelectorAll('.fold, .menu').forEach(one => { one.open = true })")
            found[f"{path} {size['width']}"] = badly_laid_out(admin)
            if admin.locator("#run-dialog").count():
                admin.click("[data-open-dialog=run-dialog]")
                found[f"{path} {size['width']} dialog"] = badly_laid_out(admin)
                admin.keyboard.press("Escape")
    assert {place: one for place, one in found.items() if one} == {}
