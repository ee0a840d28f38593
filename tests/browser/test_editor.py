"""The workflow editor in a real browser: errors while typing, completion, saving, two writers."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import TimeoutError

from tests.browser.accessibility import serious_findings
from tests.factories import make_workflow
from tests.workflows.admin.test_workflows import PLAIN
from workflows_app import services
from workflows_app.models import Workflow

pytestmark = pytest.mark.needs("browser")

LAST_ASSERTION = "      - {type: contains, value: tide}"


@pytest.fixture
def workflow(transactional_db) -> Workflow:
    return make_workflow(PLAIN, "plain")


@pytest.fixture
def editor(page, live_site, sign_in, workflow):
    """The editor of a valid workflow, checked once."""
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.goto(f"{live_site}/admin/workflows_app/workflow/{workflow.pk}/change/")
    expect_state(page, "No errors")
    yield page
    page.close()  # before the site stops: a check may be on its way


def expect_state(page, text: str) -> None:
    page.locator("#editor-state", has_text=text).wait_for()


def go_to(page, line: str, column: int) -> None:
    """Put the cursor into a line, as a click there would."""
    page.evaluate(
        """([line, column]) => {
            const editor = document.querySelector('.editor-text').env.editor;
            const row = editor.session.getDocument().getAllLines().indexOf(line);
            editor.gotoLine(row + 1, column);
            editor.focus();
        }""",
        [line, column],
    )


def test_a_misspelt_assertion_is_marked_on_its_line_and_gone_when_mended(editor):
    go_to(editor, LAST_ASSERTION, LAST_ASSERTION.index("contains") + 3)
    editor.keyboard.type("x")
    expect_state(editor, "1 error")
    error = editor.locator("#editor-state a")
    assert "(line 10)" in error.inner_text() and "Did you mean 'contains'?" in error.inner_text()
    assert editor.locator(".ace_gutter-cell.ace_error").inner_text().strip() == "10"
    assert editor.locator(".ace_marker-layer .editor-error").count() == 1

    go_to(editor, 'version: "1.0"', 0)
    error.focus()
    editor.keyboard.press("Enter")
    editor.keyboard.press("Home")
    position = "document.querySelector('.editor-text').env.editor.getCursorPosition().row"
    assert editor.evaluate(position) == 9, "the link leads to the line, by keyboard too"

    go_to(editor, LAST_ASSERTION.replace("contains", "conxtains"), LAST_ASSERTION.index("contains") + 4)
    editor.keyboard.press("Backspace")
    expect_state(editor, "No errors")
    assert editor.locator(".ace_gutter-cell.ace_error").count() == 0
    assert editor.locator("#editor-state li").count() == 0


def offered(page, typed: str) -> list[str]:
    """What the list shows while somebody types, or asks for it where typing was too quick for it."""
    page.keyboard.type(typed, delay=30)
    shown = page.locator(".ace_autocomplete .ace_line").first
    try:
        shown.wait_for(timeout=2_000)
    except TimeoutError:
        page.keyboard.press("Control+Space")
        shown.wait_for()
    return page.evaluate(
        "document.querySelector('.editor-text').env.editor.completer.completions.filtered.map((one) => one.caption)"
    )


def test_completion_offers_the_assertion_types_the_keys_and_the_souls_that_fit(editor):
    go_to(editor, LAST_ASSERTION, len(LAST_ASSERTION))
    editor.keyboard.press("Enter")
    assert offered(editor, "- type: leve") == ["levenshtein", "not-levenshtein"]
    editor.keyboard.press("Enter")
    editor.keyboard.press("Enter")
    assert offered(editor, "thre") == ["threshold"]
    editor.keyboard.press("Escape")
    text = editor.locator("textarea[name=yaml]").input_value()
    assert "      - type: levenshtein\n        thre\n" in text

    go_to(editor, "    soul_ref: analyst", len("    soul_ref: "))
    editor.keyboard.press("Shift+End")
    assert offered(editor, "ana")[0] == "analyst"


def test_saving_makes_a_version_and_the_graph_follows_the_text(editor, workflow):
    assert editor.locator("#editor-graph [data-node-id=analyze]").count() == 1
    go_to(editor, "interface:", 0)
    editor.evaluate(
        """document.querySelector('.editor-text').env.editor.insert(
            '  again:\\n    type: llm\\n    soul_ref: analyst\\n    prompt: Again\\n    depends: analyze\\n')"""
    )
    editor.locator("#editor-graph [data-node-id=again]").wait_for()
    editor.fill("[name=message]", "A second look")
    editor.click("[name=_continue]")
    editor.locator(".messagelist", has_text="Saved as version 2.").wait_for()
    expect_state(editor, "No errors")
    workflow.refresh_from_db()
    assert (workflow.current_version.number, workflow.current_version.message) == (2, "A second look")
    assert "  again:\n" in workflow.current_version.yaml and "\r" not in workflow.current_version.yaml


def test_the_second_of_two_writers_sees_the_difference(editor, workflow):
    services.save_version("plain", PLAIN.replace("value: tide", "value: theirs"))
    go_to(editor, LAST_ASSERTION, LAST_ASSERTION.index("tide"))
    editor.keyboard.type("high ")
    editor.click("[name=_continue]")
    editor.locator("#stale-title", has_text="Version 2 was saved while you were editing").wait_for()
    expect_state(editor, "No errors")
    assert "theirs" in editor.locator(".stale .diff .del").last.inner_text()
    assert "high tide" in editor.locator("textarea[name=yaml]").input_value()
    workflow.refresh_from_db()
    assert workflow.current_version.number == 2


def test_the_editor_keeps_the_strict_policy_and_has_no_serious_finding_by_axe(editor, page_faults):
    policy = editor.request.get(editor.url).headers["content-security-policy"]
    assert "unsafe" not in policy and "blob:" not in policy
    for scheme in ("light", "dark"):
        editor.emulate_media(color_scheme=scheme)
        editor.wait_for_function("document.getAnimations().length === 0")  # colours fade from theme to theme
        assert page_faults == []
        assert serious_findings(editor) == []
        page_faults.clear()  # axe itself tries inline styles
    editor.set_viewport_size({"width": 390, "height": 844})
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert editor.evaluate(over) <= 0
    box = editor.locator(".editor-text").bounding_box()
    assert box["x"] + box["width"] <= 375
    assert box["width"] >= 320  # no room is kept for the sidebar, which a phone does not show


def test_without_a_script_the_text_is_a_plain_field(browser, live_site, sign_in, workflow):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, User.objects.create_superuser("ada", password="x"))
    page.goto(f"{live_site}/admin/workflows_app/workflow/{workflow.pk}/change/")
    page.fill("textarea[name=yaml]", PLAIN.replace("type: contains", "type: contians"))
    page.click("[name=_continue]")
    assert "Did you mean 'contains'?" in page.locator(".field-yaml .errorlist").inner_text()
    page.fill("textarea[name=yaml]", PLAIN.replace("tide", "moon"))
    page.click("[name=_continue]")
    assert "Saved as version 2." in page.locator(".messagelist").inner_text()
    context.close()
