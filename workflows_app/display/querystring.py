"""What a page's address says, and links of a page to itself: they change one thing and keep what else it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest

PAGE_SIZE = 50
LONGEST_TEXT = 200
ASIDE = ("part", "seq")  # how a script asks for a part of a page; not what the page shows


def address(request: HttpRequest, **changed: object) -> str:
    """The query of the page's address with something changed; what is empty goes."""
    query = request.GET.copy()
    for name, value in changed.items():
        query[name] = str(value)
    for name in [name for name, value in query.items() if not value or name in ASIDE]:
        del query[name]
    return f"?{query.urlencode()}"


def asked_text(request: HttpRequest, name: str) -> str:
    """A short text of the address, without what no database takes."""
    return request.GET.get(name, "").replace("\0", "").strip()[:LONGEST_TEXT]


def asked_number(request: HttpRequest, name: str) -> int:
    """A small whole number of the address; 0 where it has none."""
    wanted = request.GET.get(name, "")
    return int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 9 else 0


def asked_ids(request: HttpRequest, name: str) -> list[UUID]:
    """The ids that the address names; one that is none is not found."""
    try:
        return [UUID(text) for text in request.GET.getlist(name)]
    except ValueError:
        raise Http404("There is nothing with such an id.") from None


def page_of(
    request: HttpRequest, what: str, rows: Sequence[Any] | QuerySet[Any], size: int = PAGE_SIZE
) -> Page[Any]:
    """The page of a list that the address asks for under the list's name; drawn by site/_pages.html."""
    return Paginator(rows, size).get_page(asked_number(request, what) or 1)
