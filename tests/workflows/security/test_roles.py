"""The roles as groups, and what follows from them."""

import itertools

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.test import RequestFactory

from workflows_app import services
from workflows_app.security import access

pytestmark = pytest.mark.django_db


def in_role(role: str) -> User:
    user = User.objects.create_user(role)
    user.groups.add(Group.objects.get(name=role))
    return user


@pytest.mark.parametrize("role", access.ROLES)
def test_each_role_is_a_group_with_exactly_its_permissions(role: str) -> None:
    assert in_role(role).get_all_permissions() == access.ROLES[role]


def test_each_role_holds_what_the_one_before_it_holds() -> None:
    sets = list(access.ROLES.values())
    assert all(lower < higher for lower, higher in itertools.pairwise(sets))


def test_groups_get_their_permissions_back_after_every_migrate() -> None:
    Group.objects.get(name="viewer").permissions.clear()
    access.grant_roles()
    assert in_role("viewer").has_perm(access.SEE)


def test_a_token_never_holds_more_than_its_user_or_its_role() -> None:
    viewer, editor = in_role("viewer"), in_role("editor")
    limited, _ = services.make_token(editor, "read", role="viewer")
    wide, _ = services.make_token(viewer, "wide", role="admin")
    assert access.may(editor, "workflows_app.start_run")
    assert not access.may(editor, "workflows_app.start_run", limited)
    assert access.may(editor, access.SEE, limited)
    assert not access.may(viewer, "workflows_app.start_run", wide)


def test_nobody_and_the_inactive_may_nothing() -> None:
    gone = in_role("admin")
    gone.is_active = False
    assert not access.may(gone, access.SEE)
    assert not access.may(AnonymousUser(), access.SEE)


def test_a_page_refuses_with_the_role_that_would_do() -> None:
    @access.requires("workflows_app.start_run")
    def page(request):  # type: ignore[no-untyped-def]
        return HttpResponse("started")

    request = RequestFactory().get("/")
    request.user = in_role("operator")
    assert page(request).content == b"started"
    request.user = in_role("viewer")
    with pytest.raises(PermissionDenied, match=r"workflows_app\.start_run, which the role operator has"):
        page(request)


async def test_an_async_page_is_guarded_too(db: None) -> None:
    @access.requires(access.SEE)
    async def page(request):  # type: ignore[no-untyped-def]
        return HttpResponse("seen")

    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(PermissionDenied):
        await page(request)
