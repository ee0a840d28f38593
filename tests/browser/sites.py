"""A small site with a row of everything, and the addresses of all its pages."""

from __future__ import annotations

from django.core.cache import cache

from evals_app.demo import story
from evals_app.models import EvalSuiteRun
from tests.evals.demo.test_demo import newest_text
from tests.evals.histories import add_history, add_regression
from tests.evals.pages.test_evals import BAD, GOOD
from tests.evals.pages.test_souls import USING, make_soul
from tests.factories import finish, make_workflow, run_suite
from workflows_app import services
from workflows_app.models import Run, Workflow

# What a site has before there is anything on it.
EMPTY = [
    "/",
    "/workflows/",
    "/start/",
    "/runs/",
    "/souls/",
    "/assertions/",
    "/evals/",
    "/nothing/here/",
]


def add_regressed() -> Workflow:
    """The demo's invoices after their planted change, with what it did on record."""
    cache.clear()
    workflow = make_workflow(story.first_text(story.PLANTED), slug=story.PLANTED, is_demo=True)
    add_history(workflow, [1.0] * 30, block="extract")
    version = services.save_version(story.PLANTED, newest_text(story.PLANTED), message="Explain yourself")
    workflow = version.workflow
    runs = add_history(workflow, [0.5, 1.0] * 6, block="extract", version=version)
    add_regression(runs[2], block="extract", assertion="is-json#1", since_number=33)
    return workflow


def small_site() -> list[str]:
    """Fill the tables: a workflow of one version and one of two, runs that passed and failed, an evaluated suite."""
    add_regressed()
    make_soul()
    make_workflow(USING, slug="using")
    finish(services.start_run(Workflow.objects.get(slug="using")))
    run_suite(make_workflow(GOOD, slug="greeting", is_demo=True))
    make_workflow(BAD, slug="greeting")
    greeting = Workflow.objects.get(slug="greeting")
    run_suite(greeting)
    old, new = (finish(services.start_run(greeting, {"text": text})) for text in ("hello", "bye"))
    after, before = EvalSuiteRun.objects.order_by("-started_at")
    workflow, compare = f"/workflows/{story.PLANTED}/", f"/runs/{new.pk}/compare/{old.pk}/"
    node = f"/runs/{old.pk}/nodes/{old.nodes.get().pk}/"
    of_library = Run.objects.get(workflow__slug="using")
    return [
        *EMPTY, "/workflows/?q=nobody", "/runs/?status=failed", "/runs/?since=never", "/souls/?q=nobody", "/styleguide/",
        "/workflows/using/", "/workflows/using/versions/1/", workflow, f"{workflow}?block=extract&metric=cost", f"{workflow}run/",
        f"{workflow}edit/", f"{workflow}versions/1/", f"{workflow}versions/2/", f"/runs/{new.pk}/", f"/runs/{of_library.pk}/",
        node, f"{node}case/?freeze=1", compare, f"{compare}?only=shout", f"{compare}?only=inputs", "/souls/analyst/",
        f"/assertions/?node={old.nodes.get().pk}", "/evals/greeting/", "/evals/using/", f"/evals/runs/{after.pk}/",
        f"/evals/runs/{after.pk}/?case=greets", f"/evals/runs/{after.pk}/compare/{before.pk}/",
    ]  # fmt: skip
