"""The site's own pages: log-in, errors, style guide."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.template import Context
from django.template.loader import get_template

from tests.factories import make_workflow
from tests.html import squeezed

ROOT = Path(__file__).parents[3]


@pytest.fixture
def staff(client, db):
    client.force_login(User.objects.create_superuser("ada", password="x"))
    return client


def test_the_login_page_logs_in_and_out(client, db):
    User.objects.create_user("ada", password="correct horse")
    assert b"<h1>Log in</h1>" in client.get("/login/").content
    refused = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert b'role="alert"' in refused.content
    accepted = client.post(
        "/login/", {"username": "ada", "password": "correct horse", "next": "/styleguide/"}
    )
    assert accepted["Location"] == "/styleguide/"
    assert client.post("/logout/")["Location"] == "/login/"


def test_a_missing_page_is_reported_in_our_own_words(staff):
    response = staff.get("/no/such/<page>/")
    assert response.status_code == 404
    assert b"There is nothing at this address" in response.content
    assert b"<page>" not in response.content


def test_the_icon_is_there_for_those_who_do_not_read_the_page(client):
    response = client.get("/favicon.ico")
    assert response.status_code == 302 and response["Location"].endswith(".svg")


@pytest.mark.parametrize("code", ["400", "500", "403_csrf"])
def test_an_error_page_renders_without_any_context(code):
    html = get_template(f"{code}.html").template.render(Context())
    assert "<h1>" in html and "css/tokens.css" in html


def test_an_expired_form_is_explained(db):
    from django.test import Client

    response = Client(enforce_csrf_checks=True).post("/login/", {"username": "a", "password": "b"})
    assert response.status_code == 403
    assert b"This form has expired" in response.content


def test_the_style_guide_shows_every_state_and_icon(staff):
    html = squeezed(staff.get("/styleguide/"))
    for word in ("Pending", "Running", "Completed", "Failed", "Skipped", "Cancelled", "Not evaluated"):
        assert word in html
    for symbol in ET.parse(ROOT / "static" / "img" / "icons.svg").getroot():
        assert f"#{symbol.get('id')}" in html


def test_the_style_guide_is_for_staff(client, db):
    client.force_login(User.objects.create_user("bob"))
    assert client.get("/styleguide/").status_code == 403  # the log-in page would send them back here


def test_no_access_says_what_is_missing_and_to_whom_to_turn(client, db):
    client.force_login(User.objects.create_user("bob"))
    html = squeezed(client.get("/workflows/"))
    assert "workflows_app.view_workflow, which the role viewer has" in html and "Ask an administrator" in html


def test_a_superuser_is_not_sent_to_an_administrator(admin_client):
    response = admin_client.get("/admin/workflows_app/run/add/")
    assert response.status_code == 403
    html = squeezed(response)
    assert "Nobody has" in html and "administrator" not in html


def test_navigation_marks_the_section_and_hides_the_admin_from_others(client, db):
    client.force_login(User.objects.create_user("bob"))
    html = squeezed(client.get("/runs/does-not-exist/"))
    assert '<a href="/runs/" aria-current="page">Runs</a>' in html
    assert 'href="/admin/"' not in html
    assert 'href="#content"' in html


def test_scripts_and_styles_of_a_page_stay_small():
    files = [*(ROOT / "static" / "css").glob("*.css"), *(ROOT / "static" / "js").glob("*.js")]
    shared = [p for p in files if p.stem in SHARED]
    assert len(shared) == len(SHARED)
    assert sum(p.stat().st_size for p in shared) < 90_000


SHARED = {"tokens", "base", "components", "data", "graphics", "theme", "ui", "keys", "time"}


def test_what_is_not_there_is_reported_in_words_where_there_are_some(staff):
    make_workflow()
    page = staff.get("/workflows/shout/?metric=bogus")
    assert page.status_code == 404 and b"bogus" in page.content and b"pass_rate" in page.content
    for path in ("/nothing/", "/workflows/nobody/"):
        assert b"It may have been pruned" in staff.get(path).content
