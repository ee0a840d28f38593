"""Pages of the admin load what they use: without the editor no more than 200 KB, whoever registered them."""

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client

from runsight_site.admin import LightAdmin, RunsightAdminSite
from tests.factories import make_workflow
from tests.weights import weight
from tests.workflows.test_admin_facts import add_rows
from tests.workflows.test_admin_workflows import as_
from workflows_app import services
from workflows_app.admin import facts
from workflows_app.models import PriceOverride, Provider, RunNode, Soul, Workflow

pytestmark = pytest.mark.django_db

MOST = 200_000
EDITED_IN_ACE = {"/admin/workflows_app/workflow/add/", "/admin/workflows_app/workflow/{}/change/"}
MODELS = [model._meta.label_lower.replace(".", "/") for model in admin.site._registry]


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(
        User.objects.create_superuser("root", password="x"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return client


def add_all() -> None:
    """A row of every model that has an admin."""
    for number in range(50):
        add_rows(str(number))
    Provider.objects.create(name="vllm", kind="openai", base_url="http://vllm:8000/v1")
    PriceOverride.objects.create(model_name="m", input_per_million_usd=1, output_per_million_usd=2)
    Group.objects.create(name="of our own")
    seen = {"username": "ada", "ip_address": "10.0.0.1", "user_agent": "Mozilla", "path_info": "/login/"}
    AccessAttempt.objects.create(**seen, get_data="", post_data="", failures_since_start=3)
    AccessLog.objects.create(**seen)
    AccessFailureLog.objects.create(**seen)


def pages_of(client: Client, path: str) -> list[str]:
    """The addresses of a model's pages that answer."""
    model = next(m for m in admin.site._registry if m._meta.label_lower == path.replace("/", "."))
    row = model._default_manager.order_by("-pk")[0]
    base = f"/admin/{path}/"
    tried = [base, f"{base}?q=nothing+like+it", f"{base}?_popup=1", f"{base}add/"]
    tried += [f"{base}{row.pk}/{page}/" for page in ("change", "delete", "history")]
    return [one for one in tried if client.get(one).status_code == 200]


@pytest.mark.parametrize("path", MODELS)
def test_a_page_of_the_admin_stays_light(root: Client, path: str) -> None:
    add_all()
    pages = pages_of(root, path)
    assert len(pages) >= 4
    exempt = {one.format(Workflow.objects.latest("pk").pk) for one in EDITED_IN_ACE}
    heavy = {page: weight(root, page) for page in pages if page not in exempt}
    assert {page: size for page, size in heavy.items() if size > MOST} == {}


@pytest.mark.parametrize("path", ["/admin/", "/admin/auth/", "/admin/password_change/", "/styleguide/"])
def test_the_other_pages_for_staff_stay_light_too(root: Client, path: str) -> None:
    add_all()
    assert weight(root, path) <= MOST


def test_only_those_who_may_edit_a_workflow_load_the_editor(root: Client) -> None:
    workflow = make_workflow()
    reader = as_("viewer")
    User.objects.filter(username="viewer").update(is_staff=True)
    page = f"/admin/workflows_app/workflow/{workflow.pk}/change/"
    assert b"ace.js" in root.get(page).content
    assert weight(reader, page) <= MOST


def test_long_texts_and_many_versions_do_not_make_a_page_heavy(root: Client) -> None:
    run = add_rows("long")
    text = "Überprüfen & <berichten>. " * 8000
    node = RunNode.objects.get(run=run)
    node.output, node.prompt, node.error = text, text, {"message": text}
    node.save()
    page = f"/admin/workflows_app/runnode/{node.pk}/change/"
    assert weight(root, page) <= MOST
    assert (
        f"The first {facts.MOST_CHARACTERS:,} of {len(text):,} characters" in root.get(page).content.decode()
    )
    soul = Soul.objects.get(slug="soul-long")
    for number in range(60):
        soul.system_prompt = f"Be brief. Round {number}.\n" + "Answer as a colleague would. " * 120
        services.save_soul(soul)
    page = f"/admin/workflows_app/soul/{soul.pk}/change/"
    assert weight(root, page) <= MOST
    oldest = root.get(page).context["versions"][-1]
    assert oldest["diff"] is None and oldest["before"] is not None
    asked = root.get(f"{page}?version={oldest['row'].version}").context["versions"][-1]
    assert asked["diff"] is not None and asked["is_open"]
    workflow = run.workflow
    for number in range(60):
        yaml = workflow.current_version.yaml + f"# {number}\n"  # type: ignore[union-attr]
        services.save_version(workflow.slug, yaml, message="What was changed and why, in a sentence.")
    page = f"/admin/workflows_app/workflow/{workflow.pk}/versions/"
    assert weight(root, page) <= MOST
    assert "the workflow’s page" in root.get(page).content.decode()


def test_a_class_that_fills_fields_in_gets_djangos_scripts_and_others_what_they_name() -> None:
    class Filling(admin.ModelAdmin):
        prepopulated_fields = {"slug": ("name",)}

    class Naming(admin.ModelAdmin):
        list_max_show_all = 7

        class Media:
            js = ("js/own.js",)

    site = RunsightAdminSite()
    site.register(Soul, Filling)
    site.register(Provider, Naming)
    site.register(User)
    filling, naming, plain = (site.get_model_admin(model) for model in (Soul, Provider, User))
    assert "prepopulate.js" in str(filling.media)
    assert "js/own.js" in str(naming.media) and "actions.js" in str(naming.media)
    assert isinstance(naming, Naming) and naming.list_max_show_all == 7
    assert type(plain).__mro__[1] is LightAdmin
    assert "jquery" not in str(naming.media) + str(plain.media)


def test_no_list_offers_to_show_all_its_rows(root: Client) -> None:
    for number in range(120):
        User.objects.create_user(f"user{number}")
    page = root.get("/admin/auth/user/").content.decode()
    assert "?p=2" in page and "all=" not in page
    assert root.get("/admin/auth/user/?all=").context["cl"].result_list.count() == 50
