"""Every path × role × method against the one table of who may do what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from evals_app.models import Regression, RegressionKind
from tests.callers import caller, user_in
from tests.site.access_table import API, PAGES, PREFIXES, ROLES, SAMPLES, SOCKETS
from workflows_app import services
from workflows_app.live.routing import websocket_urlpatterns
from workflows_app.models import Run, Soul, SoulVersion, Workflow, WorkflowVersion

TABLE = {**API, **PAGES}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
YAML = 'version: "1.0"\nblocks:\n  a: {type: gate, eval_key: a}\n'


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLPattern):
            if pattern.name != "api-unknown":
                yield route
        else:
            yield from routes(pattern, route)


def test_every_path_is_in_the_table() -> None:
    found = {route for route in routes(get_resolver()) if not route.startswith(tuple(PREFIXES))}
    assert found - TABLE.keys() == set(), "add these to tests/site/access_table.py"
    assert TABLE.keys() - found == set(), "no longer paths: take them out of tests/site/access_table.py"


def test_every_websocket_is_in_the_table() -> None:
    found = {str(pattern.pattern) for pattern in websocket_urlpatterns}
    assert found - {""} == set(SOCKETS)  # the empty one answers whatever else is asked for


@pytest.fixture
def sample(db: None) -> dict[str, Any]:
    """One row of everything a path may name."""
    workflow = Workflow.objects.create(slug="sample", name="Sample")
    version = WorkflowVersion.objects.create(workflow=workflow, number=1, yaml=YAML)
    Workflow.objects.filter(pk=workflow.pk).update(current_version=version, enabled=False)
    soul = Soul.objects.create(slug="sample", version="0" * 12)
    SoulVersion.objects.create(soul=soul, version=soul.version, definition={})
    run = Run.objects.create(workflow=workflow, version=version, number=1, status="completed")
    level = {"count": 20, "mean": 0.5}
    regression = Regression.objects.create(
        workflow=workflow, node_id="a", kind=RegressionKind.QUALITY, since_number=1, before=level, after=level
    )
    return {"run": run.pk, "regression": regression.pk}


def path_of(route: str, sample: dict[str, Any]) -> str:
    for parameter, stand_in in SAMPLES.items():
        route = route.replace(parameter, stand_in.format(**sample))
    unknown = re.findall(r"<[^>]+>", route)
    assert not unknown, f"say what stands for {unknown} in tests/site/access_table.py"
    return "/" + route


def is_allowed(role: str | None, least: str) -> bool:
    if least == "public":
        return True
    if role is None:
        return False
    return least == "anyone" or ROLES.index(role) >= ROLES.index(least)


CASES = [(route, method, least) for route, row in TABLE.items() for method, least in row.items()]


@pytest.mark.parametrize(("route", "method", "least"), CASES, ids=lambda value: str(value))
def test_path_is_open_to_its_role_and_those_above_only(
    route: str, method: str, least: str, sample: dict[str, Any]
) -> None:
    path = path_of(route, sample)
    for role in (None, *ROLES):
        status = ask(route, method, path, role)
        where = f"{method} {path} as {role or 'nobody'}: {status}"
        if is_allowed(role, least):
            assert status not in (401, 403) and status < 500, where
        elif route in API:
            assert status == (401 if role is None else 403), where
        else:
            assert status in ((302,) if role is None else (302, 403)), where


def ask(route: str, method: str, path: str, role: str | None) -> int:
    """The status of one request; a redirect to the log-in page counts as 302."""
    if route in API:
        client: Any = caller(role) if role else caller_nobody()
        return int(client.generic(method, path, "{}", content_type="application/json").status_code)
    client = Client()
    if role:
        client.force_login(user_in(role), backend="django.contrib.auth.backends.ModelBackend")
    response = client.generic(method, path)
    if response.status_code == 302 and not response.headers["Location"].startswith("/login/"):
        return 200
    return int(response.status_code)


def caller_nobody() -> Any:
    from rest_framework.test import APIClient

    return APIClient()


@pytest.mark.parametrize("route", API)
def test_a_method_that_is_not_in_the_table_is_not_there(route: str, sample: dict[str, Any]) -> None:
    admin = caller("admin")
    for method in set(METHODS) - API[route].keys():
        response = admin.generic(method, path_of(route, sample), "{}", content_type="application/json")
        assert response.status_code == 405, f"{method} {route}"


@pytest.mark.parametrize("role", [None, *ROLES])
def test_prefixes_are_closed_below_their_role(role: str | None, db: None) -> None:
    client = Client()
    if role:
        client.force_login(user_in(role), backend="django.contrib.auth.backends.ModelBackend")
    for prefix, least in PREFIXES.items():
        if is_allowed(role, least):
            continue
        plain = [route for route in routes(get_resolver()) if route.startswith(prefix) and "<" not in route]
        for route in plain:
            if re.search(r"[\\(^$]", route) or route.endswith(("login/", "jsi18n/")):
                continue
            assert client.get("/" + route).status_code in (302, 403, 404), route


SOCKET_ROLES = [("nobody", 4401), ("roleless", 4403), ("viewer", None)]


def key_of(who: str) -> str:
    user = User.objects.create_user(who) if who == "roleless" else user_in(who)
    return f"Token {services.make_token(user, 'socket')[1]}"


@pytest.mark.parametrize("route", SOCKETS)
@pytest.mark.parametrize(("who", "code"), SOCKET_ROLES)
@pytest.mark.django_db(transaction=True)
async def test_websockets_need_a_viewer(
    route: str, who: str, code: int | None, sample: dict[str, Any]
) -> None:
    headers = [(b"host", b"testserver")]
    if who != "nobody":
        headers.append((b"authorization", (await sync_to_async(key_of)(who)).encode()))
    socket = WebsocketCommunicator(URLRouter(websocket_urlpatterns), path_of(route, sample), headers=headers)
    assert (await socket.connect())[0]
    if code is not None:
        assert (await socket.receive_output(timeout=2))["code"] == code
    elif not await socket.receive_nothing(timeout=0.2):
        assert (await socket.receive_output())["type"] == "websocket.send"
    await socket.disconnect()
