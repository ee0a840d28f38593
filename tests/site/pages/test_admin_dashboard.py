"""The admin's first page: figures, health, isolation; the same number of queries whatever is stored."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from evals_app.models import Regression
from runsight_site.pages import admin_dashboard
from tests.callers import queries_of
from tests.factories import make_workflow
from tests.html import squeezed
from tests.workflows.admin.test_workflows import as_
from workflows_app import services
from workflows_app.engine.sandbox.report import Layer, isolation_report
from workflows_app.models import Run

pytestmark = pytest.mark.django_db


def add(tag: str, **fields: object) -> Run:
    workflow = make_workflow(slug=f"flow-{tag}")
    run = services.start_run(workflow)
    Run.objects.filter(pk=run.pk).update(**fields)
    Regression.objects.create(workflow=workflow, node_id="shout", kind="quality_drop", since_number=1)
    return run


def tiles(client: Client) -> dict[str, tuple[str, str]]:
    return {
        tile.label: (tile.value, tile.detail) for tile in client.get("/admin/").context["dashboard"]["tiles"]
    }


def test_it_shows_runs_pass_rate_regressions_and_storage() -> None:
    add("a", status="running")
    add("b", status="completed", eval_passed=True)
    add("c", status="completed", eval_passed=False)
    add("d")
    shown = tiles(as_("editor"))
    assert shown["Runs now"] == ("1", "1 waiting")
    assert shown["Pass rate, 24h"][0] == "50%"
    assert shown["Open regressions"] == ("4", "0 acknowledged")
    assert "B" in shown["Storage"][0] and admin_dashboard.database_bytes() > 10_000


def test_it_asks_the_same_number_of_queries_whatever_is_stored() -> None:
    root = Client()
    root.force_login(
        User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend"
    )
    counts = []
    for round_ in range(2):
        for number in range(1 + 4 * round_):
            add(f"{round_}-{number}")
        counts.append(queries_of(root, "/admin/"))
    assert counts[0] == counts[1] <= 12


def test_a_run_nobody_takes_is_reported() -> None:
    add("a", created_at=timezone.now() - timedelta(minutes=5))
    page = squeezed(as_("editor").get("/admin/"))
    assert "and nobody took it" in page


def test_a_weaker_layer_of_isolation_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = (Layer("network", False, "weaker: code can open connections."), *isolation_report()[:1])
    monkeypatch.setattr(admin_dashboard, "isolation_report", lambda: weaker)
    page = squeezed(as_("editor").get("/admin/"))
    assert '<li class="check check--warn"><svg class="icon" role="img" aria-label="Weaker"' in page
    assert "weaker: code can open connections." in page


def test_only_those_who_may_read_the_audit_log_see_it() -> None:
    services.audit(None, "test.row", "secret-target")
    assert "secret-target" in squeezed(as_("admin").get("/admin/"))
    assert "secret-target" not in squeezed(as_("editor").get("/admin/"))
