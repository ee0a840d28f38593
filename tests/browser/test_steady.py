"""What arrives after a page takes the room that was kept for it, so that nothing jumps."""

import json

import pytest

from tests.browser.sites import add_regressed
from tests.callers import user_in
from tests.evals.histories import add_history
from tests.factories import make_workflow

pytestmark = pytest.mark.needs("browser")
WIDTHS = (390, 768, 1024, 1280)


@pytest.fixture
def viewer(page, live_site, sign_in):
    sign_in(page, user_in("viewer"))
    return page


def heights(page, selector: str) -> list[int]:
    return page.locator(selector).evaluate_all("all => all.map(one => Math.round(one.offsetHeight))")


def test_the_dashboards_figures_take_the_room_kept_for_them(viewer, live_site, held):
    add_regressed()
    for width in WIDTHS:
        viewer.set_viewport_size({"width": width, "height": 844})
        release = held("**/figures/*")
        viewer.goto(live_site)
        before = heights(viewer, ".figures, .figure")
        release()
        viewer.locator(".figure:not(.figure--waiting)").first.wait_for()
        assert heights(viewer, ".figures, .figure") == before, width


def many_blocks() -> str:
    """Blocks with none, some and more assertions than a page of them has."""
    asked = [{"type": "is-json"}, *({"type": "contains", "value": f"{n} " * 40} for n in range(60))]
    blocks = {
        f"block_{n:02}": {
            "type": "code",
            "code": "def main(data):\n    return 1\n",
            "assertions": asked[: (0, 1, 3, 8, 60)[n % 5]],
        }
        for n in range(12)
    }
    return json.dumps({"version": "1.0", "blocks": blocks})


def test_the_small_chart_of_a_block_takes_the_room_kept_for_it(viewer, live_site, held):
    workflow = make_workflow(many_blocks(), slug="many")
    add_history(workflow, [1.0, 0.5] * 10, block="block_00", also=["block_08", "block_09"])
    for width in (390, 1280):
        viewer.set_viewport_size({"width": width, "height": 844})
        release = held("**/many/trend/*")
        viewer.goto(f"{live_site}/workflows/many/")
        before = heights(viewer, "article.block")
        assert len(before) == 12 and viewer.locator("article.block .skeleton").count() == 3
        release()
        for block in viewer.locator("article.block").all():
            block.locator(".block__trend").scroll_into_view_if_needed()
            block.locator(".skeleton").first.wait_for(state="detached")
        assert heights(viewer, "article.block") == before, width


def test_the_trend_takes_the_room_kept_for_it_with_and_without_values(viewer, live_site, held):
    workflow = make_workflow()
    add_history(workflow, [1.0] * 30)
    for width in WIDTHS:
        viewer.set_viewport_size({"width": width, "height": 844})
        release = held("**/trend/*")
        viewer.goto(f"{live_site}{workflow.get_absolute_url()}")
        before = heights(viewer, "#trend-part")
        release()
        viewer.locator("#trend-part .chart__plot").wait_for()
        assert heights(viewer, "#trend-part") == before, width
        viewer.click("#trend-part >> text=Tokens")
        viewer.locator("#trend-part .chart__empty").wait_for()
        assert heights(viewer, "#trend-part") == before, width
