"""A run watched in a real browser: it fills in by itself, survives a lost connection, and leads to its comparison."""

import re

import pytest
from django.db import transaction
from playwright.sync_api import expect

from tests.callers import user_in
from tests.factories import finish, make_workflow
from workflows_app import events, services
from workflows_app.models import EventName

pytestmark = pytest.mark.needs("browser")
expect.set_options(timeout=20_000)  # a busy machine is slow, not wrong

# Each block takes as long as the run says, so that there is something to watch.
WATCHED = """\
version: "1.0"
blocks:
  first:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(data["inputs"]["pause"])
          return {"total": data["inputs"]["total"]}
    assertions:
      - {type: equals, value: 5, transform: "json_path:$.total"}
      - {type: is-json}
  second:
    type: code
    depends: first
    code: |
      import time
      def main(data):
          time.sleep(data["inputs"]["pause"])
          return "# Report\\n\\nAll *good*."
    assertions:
      - {type: contains, value: Report}
interface:
  inputs:
    - {name: total, type: number, default: 5}
    - {name: pause, type: number, default: 0}
"""


@pytest.fixture
def watched(executor):
    return make_workflow(WATCHED, "watched")


@pytest.fixture
def operator(live_site, page, sign_in):
    """A page of somebody who may start runs."""
    sign_in(page, user_in("operator"))
    return page


def state(page, block: str):
    return page.locator(f'[data-block="{block}"] .node-row__state')


def in_graph(page, block: str):
    return page.locator(f'.graph [data-node-id="{block}"]')


def test_a_run_fills_in_without_a_reload_and_leads_to_the_comparison(operator, live_site, watched):
    page = operator
    good = finish(services.start_run(watched, {"total": 5}))
    bad = finish(services.start_run(watched, {"total": 7, "pause": 3}))
    page.goto(f"{live_site}/runs/{bad.pk}/")
    page.click("text=Run again")
    page.evaluate("window.isSamePage = true")
    expect(state(page, "first")).to_have_text("Failed")
    expect(in_graph(page, "first")).to_have_attribute("data-status", "failed")
    expect(in_graph(page, "first").locator(".graph__dots > *")).to_have_count(2)
    expect(state(page, "second")).to_have_text("Running")
    expect(page.locator("#blocks-done")).to_have_text("1 of 2 done")
    expect(page.locator(".inspector .assertion--failed")).to_contain_text("passed in 1 of the last 2")
    expect(state(page, "second")).to_have_text("Passed")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Completed")
    expect(page.locator("#announcement")).to_have_text("Run #3 completed, not all assertions passed.")
    expect(page.locator("#log > li").last).to_contain_text("run completed")
    expect(page.locator("#blocks-done")).to_have_text("2 of 2 done")
    assert page.evaluate("window.isSamePage") is True
    assert page.locator(".inspector").get_attribute("data-inspected-block") == "first"

    in_graph(page, "second").click()
    expect(page.locator(".markdown h4")).to_have_text("Report")
    assert re.search(r"#node-\d+$", page.url)
    page.reload()
    expect(page.locator(".inspector")).to_have_attribute("data-inspected-block", "second")

    page.goto(f"{live_site}/runs/{bad.pk}/")
    page.keyboard.press("c")
    page.wait_for_url(f"**/runs/{bad.pk}/compare/{good.pk}/")
    expect(page.locator(".note--bad")).to_contain_text("#2 is worse than #1.")
    expect(page.locator(".flip--worse")).to_contain_text("equals")
    expect(page.locator(".compared ins").first).to_have_text("7")
    page.click("text=Changed only")
    expect(page.locator(".compared")).to_have_count(1)


def test_a_regression_is_reported_in_the_words_of_the_log(operator, live_site, watched):
    page = operator
    run = services.start_run(watched, {"pause": 20})
    page.goto(f"{live_site}/runs/{run.pk}/")
    expect(state(page, "first")).to_have_text("Running")
    with transaction.atomic():
        run.refresh_from_db()
        events.append(
            run, events.advance(run), EventName.REGRESSION_FOUND, node_id="first", kind="quality_drop"
        )
    expect(page.locator(".toast")).to_have_text("Regression found: quality drop of first.")
    services.cancel_run(run)


def test_a_lost_connection_is_reported_and_what_was_missed_arrives(operator, live_site, watched, page_faults):
    page = operator
    run = services.start_run(watched, {"pause": 3})
    page.goto(f"{live_site}/runs/{run.pk}/")
    page.context.set_offline(True)
    expect(page.locator("[data-connection]")).to_be_visible()
    finish(run)
    expect(state(page, "second")).not_to_have_text("Passed")
    page.context.set_offline(False)
    expect(page.locator("[data-connection]")).to_be_hidden()
    for block in ("first", "second"):
        expect(state(page, block)).to_have_text("Passed")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Completed")
    sequence = [int(text) for text in page.locator("#log .log__seq").all_inner_texts()]
    assert sequence == list(range(1, len(sequence) + 1))
    page_faults[:] = [fault for fault in page_faults if "ERR_INTERNET_DISCONNECTED" not in fault]


def test_the_block_that_failed_is_shown_though_the_run_ends_while_it_loads(operator, live_site, executor):
    page = operator
    text = WATCHED.replace('return "# Report', 'raise ValueError("no paper")  # ')
    run = services.start_run(make_workflow(text, "ends-badly"), {"pause": 2})

    def answer_late(route):
        finish(run)
        route.continue_()

    page.route("**/nodes/*/?part=1", answer_late)
    page.goto(f"{live_site}/runs/{run.pk}/")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Failed")
    expect(page.locator(".inspector")).to_have_attribute("data-inspected-block", "second")
    expect(page.locator(".inspector .note--bad")).to_contain_text("no paper")


def test_the_head_goes_on_while_something_in_it_has_the_focus(operator, live_site, watched):
    page = operator
    finish(services.start_run(watched))
    run = services.start_run(watched, {"pause": 2})
    page.goto(f"{live_site}/runs/{run.pk}/#%")  # an address that nobody can decode stops nothing
    page.focus("[data-compare]")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Completed")
    expect(page.locator("[data-compare]")).to_be_focused()


SMALL = """\
version: "1.0"
blocks:
  slow:
    type: code
    code: |
      import time
      def main(data):
          time.sleep(0.3)
          return "one"
    assertions:
      - {type: contains, value: one, weight: 4}
      - {type: contains, value: two, weight: 996}
"""


def test_numbers_read_the_same_live_and_after_a_reload(operator, live_site, executor):
    page = operator
    run = services.start_run(make_workflow(SMALL, "small"))
    page.goto(f"{live_site}/runs/{run.pk}/")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Completed")
    expect(page.locator(".node-row__score")).to_have_text("0.01")
    shown = (
        ".node-row__score, .node-row__figures, .node-row__state, .graph__score, .facts dd, .inspector .num"
    )
    live = page.locator(shown).all_text_contents()
    assert re.search(r"\b(\d{3} ms|\d\.\d s)", page.inner_text(".node-row__figures"))
    page.reload()
    assert page.locator(shown).all_text_contents() == live


PASSED_BY = """\
version: "1.0"
blocks:
  read: {type: code, code: "def main(data): return 'no'", assertions: [{type: contains, value: 'yes'}]}
  check: {type: gate, depends: read, eval_key: read, pass: good, fail: bad}
  good: {type: code, code: "def main(data): return 1"}
  bad: {type: code, code: "import time\\ndef main(data):\\n    time.sleep(6)"}
"""


def test_a_block_that_a_route_passes_by_is_shown_as_skipped_while_the_run_goes_on(
    operator, live_site, executor
):
    page = operator
    run = services.start_run(make_workflow(PASSED_BY, "passed-by"))
    page.goto(f"{live_site}/runs/{run.pk}/")
    expect(state(page, "bad")).to_have_text("Running")
    expect(state(page, "good")).to_have_text("Skipped")
    expect(in_graph(page, "good")).to_have_attribute("data-status", "skipped")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Running")


def test_a_large_graph_is_drawn_in_place_when_asked_for(operator, live_site, executor):
    page = operator
    text = 'version: "1.0"\nblocks:\n' + "".join(
        f'  step_{n}: {{type: code, code: "def main(data): return 1"{f", depends: step_{n - 1}" if n else ""}}}\n'
        for n in range(51)
    )
    run = finish(services.start_run(make_workflow(text, "long")), timeout=60)
    page.goto(f"{live_site}/runs/{run.pk}/")
    page.evaluate("window.isSamePage = true")
    page.click("text=Draw all 51 blocks")
    expect(page.locator(".graph [data-node-id]")).to_have_count(51)
    assert page.evaluate("window.isSamePage") is True
    page.goto(f"{live_site}/workflows/long/")
    page.click("text=Draw all 51 blocks")
    expect(page.locator(".graph [data-node-id]")).to_have_count(51)
    assert "graph=all" in page.url


def test_cancelling_shows_at_once(operator, live_site, watched):
    page = operator
    run = services.start_run(watched, {"pause": 20})
    page.goto(f"{live_site}/runs/{run.pk}/")
    expect(state(page, "first")).to_have_text("Running")
    page.click("text=Cancel run")
    expect(page.locator("h1 ~ .badge").first).to_have_text("Cancelled")
    expect(page.locator("text=Cancel run")).to_have_count(0)


def test_the_list_filters_selects_and_compares_by_keyboard(operator, live_site, watched):
    page = operator
    runs = [services.start_run(watched, {"total": total}) for total in (5, 7)]
    for run in runs:
        finish(run)
    page.goto(f"{live_site}/runs/")
    page.keyboard.press("/")
    expect(page.locator("[name=workflow]")).to_be_focused()
    page.keyboard.press("Escape")
    assert page.locator("[data-compare]").is_disabled()
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    page.keyboard.press("c")
    page.wait_for_url(f"**/runs/{runs[1].pk}/compare/{runs[0].pk}/")
    page.go_back()
    page.select_option("[name=verdict]", "failed")
    page.wait_for_url("**/runs/?verdict=failed")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_long_word_that_was_expected_stays_on_the_page(operator, live_site, executor):
    page = operator
    text = WATCHED.replace("value: Report", f"value: {'Unbreakable' * 20}", 1)
    assert text != WATCHED
    run = finish(services.start_run(make_workflow(text, "long-word")))
    page.goto(f"{live_site}/runs/{run.pk}/")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )


def test_a_huge_output_is_loaded_when_asked_for(operator, live_site, executor):
    page = operator
    text = WATCHED.replace('return "# Report', 'return "word " * 50_000 + "end # Report')
    run = finish(services.start_run(make_workflow(text, "huge")))
    page.goto(f"{live_site}/runs/{run.pk}/")
    assert len(page.locator("#output").inner_text()) <= 20_000
    page.click("text=Show all of it")
    expect(page.locator("#output")).to_contain_text("end # Report")
    assert page.evaluate("document.querySelector('#output').textContent.length") == 250_000 + len(
        "end # Report\n\nAll *good*."
    )


def test_a_phone_sorts_the_list_where_its_columns_have_no_heads(operator, live_site, watched):
    page = operator
    for total in (5, 7):
        finish(services.start_run(watched, {"total": total}))
    page.goto(f"{live_site}/runs/?verdict=failed")
    assert not page.locator("[name=sort]").is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.focus("[name=number]")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "sort":
            break
    page.keyboard.type("Worst")
    page.wait_for_url("**/runs/?verdict=failed&sort=score")
    expect(page.locator("[name=sort]")).to_have_value("score")
    page.select_option("[name=verdict]", "")
    page.wait_for_url("**/runs/?sort=score")
    expect(page.locator("tbody th")).to_have_text([re.compile("#2"), re.compile("#1")])
    page.select_option("[name=sort]", "")
    page.wait_for_url(re.compile(r"/runs/\??$"))


def test_a_text_that_was_loaded_whole_is_no_longer_called_a_beginning(operator, live_site, executor):
    page = operator
    text = WATCHED.replace(
        'return "# Report', 'return "# Report\\n\\n" + "a paragraph\\n\\n" * 30_000 + "end'
    )
    run = finish(services.start_run(make_workflow(text, "huge")))
    page.goto(f"{live_site}/runs/{run.pk}/")
    page.click("text=/Show all .* of the source/")
    expect(page.locator("#output")).to_contain_text("end")
    assert page.locator("text=/^The first .* characters/").count() == 0
    page.click("role=tab >> text=Rendered")
    expect(page.locator("text=This is its beginning.")).to_be_visible()
