"""What every page may print."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from runsight_site.serving import demo


@dataclass(frozen=True)
class Place:
    """One entry of the navigation."""

    name: str
    path: str
    section: str
    is_for_staff: bool = False


NAVIGATION = (
    Place("Dashboard", "/", "dashboard"),
    Place("Workflows", "/workflows/", "workflows"),
    Place("Runs", "/runs/", "runs"),
    Place("Souls", "/souls/", "souls"),
    Place("Assertions", "/assertions/", "assertions"),
    Place("Evals", "/evals/", "evals"),
    Place("Admin", "/admin/", "admin", is_for_staff=True),
    Place("API docs", "/api/docs/", "api"),
)


def site(request: HttpRequest) -> dict[str, Any]:
    """The navigation, the section of the site a page belongs to, and how far the demo is."""
    section = request.path.strip("/").split("/", 1)[0]
    return {
        "section": section or "dashboard",
        "navigation": NAVIGATION,
        "demo_loading": demo.state() == demo.LOADING,
    }
