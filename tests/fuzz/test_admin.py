"""The admin asked with addresses nobody would type: an answer, never a fault of the server's."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.doors import answer_of, taken_back
from tests.fuzz.effort import effort
from tests.fuzz.test_pages import FIELDS, HOT, asked, posted, written
from tests.site.test_access import routes

pytestmark = pytest.mark.django_db
PREFIX = "admin/"
LISTS = sorted(
    route for route in routes(get_resolver()) if route.startswith(PREFIX) and not set(route) & set("<(^$\\")
)
OBJECTS = sorted(route for route in routes(get_resolver()) if route.startswith(PREFIX) and "<" in route)
NAMES = ["q", "p", "o", "e", "all", "copy", "against", "next", "status", "id__exact", "workflow__id__exact",
         "created_at__gte", "created_at__lt", "_facets", "_popup", "_to_field", "_changelist_filters", "term",
         "app_label", "model_name", "field_name"]  # fmt: skip
queries = st.lists(st.tuples(st.sampled_from(NAMES), asked), max_size=3)
ids = st.sampled_from(["1", "{run}", "{node}", "invoices", "0"]) | st.sampled_from(
    [text for text in HOT if text]
)


@pytest.fixture
def admin(site: dict[str, Any]) -> Client:
    client = Client(raise_request_exception=False)
    user = User.objects.create_superuser("root")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@st.composite
def paths(draw: Any) -> str:
    """A page of the admin, of a thing that is there or cannot be."""
    route: str = draw(st.sampled_from([*LISTS, *OBJECTS]))
    while "<" in route:
        start, end = route.index("<"), route.index(">")
        thing = draw(ids)
        known = thing if thing.startswith("{") else quote(thing.encode(errors="surrogatepass"), safe="")
        route = route[:start] + known + route[end + 1 :]
    return "/" + route


def filled(path: str, site: dict[str, Any]) -> str:
    return path.replace("{run}", site["run"]).replace("{node}", site["node"])


@effort(40)
@given(paths(), queries)
def test_any_address(site: dict[str, Any], admin: Client, path: str, query: list[tuple[str, str]]) -> None:
    answer_of(admin, "GET", filled(path, site), QUERY_STRING=written(query))


@effort(20)
@given(
    paths(),
    st.dictionaries(st.sampled_from([*sorted(FIELDS), "action", "_selected_action"]), posted, max_size=4),
)
def test_any_form(site: dict[str, Any], admin: Client, path: str, changed: dict[str, str]) -> None:
    form = {**FIELDS, **changed}
    data = urlencode({name: value.encode(errors="surrogatepass") for name, value in form.items()})
    with taken_back():
        answer_of(
            admin, "POST", filled(path, site), data=data, content_type="application/x-www-form-urlencoded"
        )
