"""What a page's address says, and links of a page to itself: they change one thing and keep what else it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

ASIDE = ("part", "seq")  # how a script asks for a part of a page; not what the page shows


def address(request: HttpRequest, **changed: object) -> str:
    """The query of the page's address with something changed; what is empty goes."""
    query = request.GET.copy()
    for name, value in changed.items():
        query[name] = str(value)
    for name in [name for name, value in query.items() if not value or name in ASIDE]:
        del query[name]
    return f"?{query.urlencode()}"


def asked_number(request: HttpRequest, name: str) -> int:
    """A small whole number of the address; 0 where it has none."""
    wanted = request.GET.get(name, "")
    return int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 9 else 0


def page_of(request: HttpRequest, what: str, rows: Sequence[Any] | QuerySet[Any], size: int) -> Page[Any]:
    """The page of a list that the address asks for under the list's name; drawn by site/_pages.html."""
    return Paginator(rows, size).get_page(asked_number(request, what) or 1)
