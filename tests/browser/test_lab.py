"""The assertion lab in a real browser: results while typing, examples, faults on their lines, a backtest."""

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import serious_findings
from tests.callers import user_in
from tests.factories import finish, make_workflow
from workflows_app import services

pytestmark = pytest.mark.needs("browser")


@pytest.fixture
def lab(page, live_site, sign_in):
    """The lab, as a viewer sees it, with a workflow that ran three times."""
    workflow = make_workflow()
    for text in ("hello", "hello there", "bye now"):
        finish(services.start_run(workflow, {"text": text}))
    sign_in(page, user_in("viewer"))
    page.goto(f"{live_site}/assertions/")
    return page


def rows(page) -> list[str]:
    return page.locator("#lab-rows .badge").all_inner_texts()


def test_results_follow_the_typing(lab):
    lab.fill("#lab-output", "one two three")
    lab.fill("#lab-assertions", "- {type: word-count, value: 3}\n- {type: contains, value: four}")
    lab.locator("#lab-rows >> text=does not contain 'four'").wait_for()
    assert rows(lab) == ["Passed", "Failed"]
    assert lab.inner_text("#lab-summary").split() == ["Failed", "score", "0.50"]
    lab.fill("#lab-output", "one two four")
    lab.locator("#lab-summary >> text=Passed").wait_for()
    assert rows(lab) == ["Passed", "Passed"]


def test_what_was_typed_and_picked_before_the_script_came_counts(lab, held):
    release = held("**/lab*.js")
    lab.reload(wait_until="commit")
    lab.fill("#lab-assertions", "- {type: contains, value: four}")
    lab.select_option("#lab-workflow", "shout")
    release()
    lab.locator("#lab-rows >> text=does not contain 'four'").wait_for()
    lab.locator("#lab-block option[value=shout]").wait_for(state="attached")


def test_the_verdict_is_the_one_a_run_would_have(lab):
    lab.fill("#lab-output", "one two three")
    lab.fill("#lab-latency", "")
    lab.fill("#lab-assertions", "- {type: contains, value: four}\n- {type: latency, threshold: 5}")
    lab.locator("#lab-rows >> text=Error").wait_for()
    assert lab.inner_text("#lab-summary").split()[0] == "Failed"
    lab.fill("#lab-assertions", "- {type: contains, value: two}\n- {type: latency, threshold: 5}")
    lab.locator("#lab-summary >> text=Error").wait_for()


def test_half_typed_yaml_keeps_the_results_and_names_the_line(lab):
    before = rows(lab)
    lab.fill("#lab-assertions", "- {type: is-json}\n- {type: [")
    lab.locator("#lab-faults >> text=not valid YAML").wait_for()
    assert rows(lab) == before
    assert "Results are from before." in lab.inner_text("#lab-summary")
    lab.fill("#lab-assertions", "- {type: is-json}\n- {type: contians, value: x}")
    lab.locator("#lab-faults >> text=Did you mean 'contains'?").wait_for()
    lab.click("#lab-faults >> text=Line 2")
    lab.fill("#lab-assertions", "- nonsense")
    lab.locator("#lab-faults code >> text=type").wait_for()
    assert "`" not in lab.inner_text("#lab-faults")
    lab.fill("#lab-assertions", "- {type: is-json}\n- {type: contians, value: x}")
    lab.click("#lab-faults >> text=Line 2")
    selected = "t => t.value.slice(t.selectionStart, t.selectionEnd)"
    assert lab.locator("#lab-assertions").evaluate(selected) == "- {type: contians, value: x}"
    lab.click("#type-regex [data-insert]")
    assert lab.input_value("#lab-assertions").endswith('value: "\\\\b\\\\d{4}-\\\\d{2}-\\\\d{2}\\\\b"\n')


def test_a_number_that_is_none_is_reported_beside_it(lab):
    said = lab.locator("#lab-cost + .field__error")
    lab.fill("#lab-cost", "cheap")
    said.wait_for(state="visible")
    lab.fill("#lab-cost", "0.1")
    said.wait_for(state="hidden")


def test_a_backtest_shows_which_runs_flip_and_the_threshold(lab):
    lab.select_option("#lab-workflow", "shout")
    lab.locator("#lab-block option[value=shout]").wait_for(state="attached")
    assert lab.input_value("#lab-block") == "shout"  # the only one there is
    lab.fill("#lab-assertions", "- {type: word-count, value: {max: 1}}")
    lab.click("#lab-backtest")
    lab.locator("#lab-report >> text=1 verdict would flip").wait_for()
    assert lab.locator("#lab-report .chart__threshold").count() == 1
    assert lab.locator("#lab-report tbody a").inner_text() == "#2"
    assert not lab.locator("#lab-progress").is_visible()
    for scheme in ("light", "dark"):
        lab.emulate_media(color_scheme=scheme)
        assert serious_findings(lab) == []
    lab.set_viewport_size({"width": 390, "height": 844})
    assert lab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_results_stay_readable_while_new_ones_are_asked_for(lab):
    lab.locator("#lab-rows .badge").first.wait_for()
    lab.route("**/assertions/?part=1", lambda route: None)  # never answered
    lab.fill("#lab-output", "one two three")
    lab.locator(".lab-results[aria-busy=true]").wait_for()
    assert serious_findings(lab) == []


def test_a_block_can_be_taken_over_and_what_is_missing_is_said(lab):
    lab.click("#lab-backtest")
    lab.locator("#lab-report >> text=Choose a workflow.").wait_for()
    lab.select_option("#lab-workflow", "shout")
    lab.locator("#lab-block option[value=shout]").wait_for(state="attached")
    lab.click("text=Start from this block")
    expect(lab.locator("#lab-output")).to_have_value("BYE NOW")
    assert "value: HELLO" in lab.input_value("#lab-assertions")
    lab.locator("#lab-rows >> text=does not contain 'HELLO'").wait_for()
    assert rows(lab) == ["Failed"]


def test_what_a_block_took_the_place_of_can_be_had_back(lab):
    lab.fill("#lab-output", "my text")
    lab.fill("#lab-assertions", "- {type: contains, value: mine}")
    lab.click("text=Start from this block")
    lab.locator("#lab-report >> text=Choose a workflow and a block.").wait_for()
    lab.select_option("#lab-workflow", "shout")
    lab.locator("#lab-block option[value=shout]").wait_for(state="attached")
    lab.click("text=Start from this block")
    expect(lab.locator("#lab-output")).to_have_value("BYE NOW")
    lab.fill("#lab-output", "changed since")
    lab.click("text=Bring back what was there")
    assert lab.input_value("#lab-output") == "my text"
    assert lab.input_value("#lab-assertions") == "- {type: contains, value: mine}"
    lab.locator("#lab-rows >> text=does not contain 'mine'").wait_for()
    lab.click("text=Bring back what was there")
    assert lab.input_value("#lab-output") == "changed since"


def test_the_lab_goes_on_by_itself_when_the_server_is_back(lab, page_faults):
    lab.context.set_offline(True)
    lab.fill("#lab-assertions", "- {type: contains, value: four}")
    lab.locator("#lab-summary", has_text="cannot be reached").wait_for()
    lab.context.set_offline(False)
    lab.locator("#lab-rows >> text=does not contain 'four'").wait_for()
    page_faults[:] = [one for one in page_faults if "ERR_INTERNET_DISCONNECTED" not in one]


def test_the_direction_of_a_huge_text_is_not_looked_for(lab):
    lab.fill("#lab-output", "x" * 60_000)
    expect(lab.locator("#lab-output")).to_have_attribute("dir", "ltr")
    lab.fill("#lab-output", "short")
    expect(lab.locator("#lab-output")).to_have_attribute("dir", "auto")
