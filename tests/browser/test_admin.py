"""The admin in a real browser: pop-ups beside fields, selectors, lists and their actions."""

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import expect

from evals_app.models import PinnedBaseline
from tests.browser.accessibility import serious_findings
from tests.evals.histories import add_history
from tests.factories import make_workflow
from workflows_app.models import ApiToken, Workflow

pytestmark = pytest.mark.needs("browser")


@pytest.fixture
def root(page, live_site, sign_in):
    """`root(path)` opens a page of the admin as a superuser."""
    sign_in(page, User.objects.create_superuser("ada", password="x"))

    def go(path):
        page.goto(f"{live_site}/admin/{path}")
        page.wait_for_load_state("load")
        return page

    return go


def choose(popup, target):
    """Click what closes its own window; a real click would report on a page that is gone."""
    target.wait_for()
    popup.wait_for_load_state("load")  # its scripts listen now
    with popup.expect_event("close"):
        target.evaluate("one => { setTimeout(() => one.click()); }")


def test_what_a_field_refers_to_is_chosen_in_a_pop_up(root):
    workflow = make_workflow()
    run = add_history(workflow, [1.0])[0]
    page = root("evals_app/pinnedbaseline/add/")
    for field, choice in (("workflow", workflow.slug), ("run", f"{workflow.slug} #{run.number}")):
        with page.expect_popup() as opened:
            page.click(f"#lookup_id_{field}")
        chooser = opened.value
        chooser.fill("#searchbar", workflow.slug)
        with chooser.expect_navigation():
            chooser.keyboard.press("Enter")
        choose(chooser, chooser.get_by_role("link", name=choice, exact=True))
    assert page.input_value("#id_workflow") == str(workflow.pk)
    assert page.input_value("#id_run") == str(run.pk)
    page.click("[name=_save]")
    assert PinnedBaseline.objects.get().run_id == run.pk


def test_a_group_is_added_in_a_pop_up_and_moved_between_the_two_lists(root):
    bob = User.objects.create_user("bob")
    page = root(f"auth/user/{bob.pk}/change/")
    page.locator("#id_groups_from").wait_for()
    with page.expect_popup() as opened:
        page.click("#add_id_groups")
    popup = opened.value
    popup.fill("#id_name", "night shift")
    popup.locator("#id_permissions_from").wait_for()
    choose(popup, popup.locator("[name=_save]"))
    chosen = page.locator("#id_groups_to option")
    assert chosen.all_inner_texts() == ["night shift"]
    page.locator("#id_groups_input").press_sequentially("oper")
    expect(page.locator("#id_groups_from option")).to_have_text(["operator"])
    page.select_option("#id_groups_from", label="operator")
    page.click("#id_groups_add")
    assert sorted(chosen.all_inner_texts()) == ["night shift", "operator"]
    page.click("[name=_save]")
    assert set(bob.groups.values_list("name", flat=True)) == {"night shift", "operator"}


def test_the_links_beside_a_select_follow_what_is_chosen(root):
    """No form of ours has such a select now; Django's widget makes it for any foreign key."""
    group = Group.objects.get(name="viewer")
    page = root("auth/group/add/")
    page.evaluate(
        """value => {
        document.querySelector("form[id]").insertAdjacentHTML("beforeend", `<div class="related-widget-wrapper">
          <select id="id_g"><option value=""></option><option value="${value}">viewer</option></select>
          <a class="related-widget-wrapper-link change-related" id="change_id_g" data-popup="yes"
             data-href-template="/admin/auth/group/__fk__/change/?_to_field=id&amp;_popup=1">change</a></div>`)}""",
        str(group.pk),
    )
    link = page.locator("#change_id_g")
    page.select_option("#id_g", label="viewer")
    assert link.get_attribute("href").startswith(f"/admin/auth/group/{group.pk}/change/")
    with page.expect_popup() as opened:
        link.click()
    opened.value.wait_for_load_state()
    page.evaluate(
        "([window_, value]) => dismissChangeRelatedObjectPopup({name: 'id_g__1', location: {pathname: '/a/auth/group/1/change/'},"
        " close() {}}, value, 'readers', value)",
        [None, str(group.pk)],
    )
    assert page.locator("#id_g option:checked").inner_text() == "readers"
    page.evaluate(
        "value => dismissDeleteRelatedObjectPopup({name: 'delete_id_g__1', close() {}}, value)", str(group.pk)
    )
    assert page.locator("#id_g option").count() == 1
    assert link.get_attribute("href") is None and link.get_attribute("aria-disabled") == "true"


def test_rows_are_selected_and_acted_on(root):
    for number in range(3):
        make_workflow(slug=f"flow-{number}")
    page = root("workflows_app/workflow/")
    page.check("#action-toggle")
    assert page.locator(".action-counter").inner_text() == "3 of 3 selected"
    page.locator("input.action-select").first.uncheck()
    assert page.locator(".action-counter").inner_text() == "2 of 3 selected"
    page.select_option("select[name=action]", label="Disable")
    page.click(".actions button")
    assert page.locator(".messagelist").inner_text() == "Disabled 2 workflows."
    assert Workflow.objects.filter(enabled=False).count() == 2
    page.click("#changelist-filter >> text=No >> nth=0")
    expect(page.locator("#result_list tbody tr")).to_have_count(2)
    page.fill("#searchbar", "no such workflow")
    page.keyboard.press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(0)


def test_a_row_is_deleted_after_a_question_that_can_be_taken_back(root):
    Group.objects.create(name="gone soon")
    page = root("auth/group/")
    page.click("text=gone soon")
    page.click(".deletelink")
    page.wait_for_load_state("load")  # its script comes late
    page.click(".cancel-link")
    page.wait_for_url("**/change/**")
    page.click(".deletelink")
    page.click("input[type=submit]")
    assert not Group.objects.filter(name="gone soon").exists()


def test_a_token_is_made_for_a_user_chosen_in_a_pop_up(root):
    bob = User.objects.create_user("bob")
    page = root("workflows_app/apitoken/add/")
    with page.expect_popup() as opened:
        page.click("#lookup_id_user")
    choose(opened.value, opened.value.get_by_role("link", name="bob", exact=True))
    assert page.input_value("#id_user") == str(bob.pk)
    page.fill("#id_name", "nightly")
    page.click("[name=_save]")
    assert page.locator(".made-key").input_value().startswith("rs_")
    assert ApiToken.objects.get().user == bob


def test_on_a_phone_filters_are_folded_above_a_list_that_is_selected_by_a_word(root, page):
    make_workflow()
    page.set_viewport_size({"width": 390, "height": 844})
    root("workflows_app/workflow/")
    filters = page.locator("#changelist-filter")
    assert filters.bounding_box()["y"] < page.locator("#result_list").bounding_box()["y"]
    expect(filters.get_by_text("Enabled")).to_be_hidden()
    filters.get_by_text("Filter").click()
    expect(filters.get_by_text("Enabled")).to_be_visible()
    page.get_by_text("Select all").click()
    expect(page.locator(".action-counter")).to_have_text("1 of 1 selected")


def test_on_a_phone_a_field_and_what_looks_it_up_share_a_line(root, page):
    page.set_viewport_size({"width": 390, "height": 844})
    root("evals_app/pinnedbaseline/add/")
    field, lookup = (page.locator(name).bounding_box() for name in ("#id_run", "#lookup_id_run"))
    assert field["y"] <= lookup["y"] and lookup["y"] + lookup["height"] <= field["y"] + field["height"]
    assert field["x"] + field["width"] <= lookup["x"] and lookup["x"] + lookup["width"] <= 390


def test_the_page_of_a_list_that_is_open_is_marked(root):
    User.objects.bulk_create(User(username=f"user{number}") for number in range(60))
    page = root("auth/user/")
    colour = "one => getComputedStyle(one).backgroundColor"
    here, other = page.locator(".paginator .this-page"), page.locator(".paginator a").first
    assert here.evaluate(colour) != other.evaluate(colour)


@pytest.mark.parametrize(
    "path", ["", "workflows_app/workflow/", "auth/user/", "auth/user/add/", "workflows_app/provider/add/"]
)
def test_a_page_of_the_admin_has_no_serious_finding_by_axe(root, path, page_faults):
    make_workflow()
    page = root(path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page_faults == []
        assert serious_findings(page) == []
        page_faults.clear()  # axe itself tries inline styles on forms
