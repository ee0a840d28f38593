"""Server time of each page with 1,000 runs stored and with 20,000, or `--runs` of them.

Two SQLite databases take turns, or two made on the PostgreSQL server that DATABASE_URL names, so that a slow moment of
the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

if "RUNSIGHT_HOME" not in os.environ:
    home = tempfile.TemporaryDirectory(prefix="runsight-bench-")  # until the process ends
    os.environ["RUNSIGHT_HOME"] = home.name
os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import django  # noqa: E402

django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import models  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import resolve, reverse  # noqa: E402
from fill import NODES_A_RUN  # noqa: E402
from history import History  # noqa: E402
from sides import Side  # noqa: E402

from evals_app.models import EvalSuiteRun  # noqa: E402
from evals_app.pages.runs.listing import Order  # noqa: E402
from tests.site.access_table import PAGES  # noqa: E402
from workflows_app.admin.facts import FactAdmin  # noqa: E402
from workflows_app.models import Run, Soul, Workflow  # noqa: E402

FEW = 1_000
ROUNDS = 15
SEARCHED = ("nothing", "b2", "stored", "stored#17")  # in the admin
MOST_MS, MOST_TIMES = 300, 1.5
# Answers that stream everything there is, and those of a process or of somebody who is not logged in.
LEFT_OUT = {
    "runs/export.csv", "runs/export.jsonl", "healthz", "readyz", "favicon.ico", "login/", "login/once/<str:token>/",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20_000, help="how many are many; ten nodes each")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    serve(options.serve) if options.serve else compare(options.runs)


def compare(many: int) -> None:
    """Ask both sides in turn, and print a line for each page."""
    url = os.environ.get("DATABASE_URL", "")
    server = url if url.startswith("postgres") else None
    sides: list[Side] = []
    try:
        for runs in (FEW, many):
            sides.append(Side(__file__, runs, server))
            sides[-1].ask("round")  # which fills it, and warms up
        rounds = [[json.loads(side.ask("round")) for side in sides] for _ in range(ROUNDS)]
    finally:
        for side in sides:
            side.stop()
    where = "PostgreSQL" if server else "SQLite"
    print(f"{where}, {NODES_A_RUN} nodes a run; medians of {ROUNDS} rounds, in ms")
    print(f"{'page':52}{f'{FEW:,} runs':>14}{f'{many:,} runs':>14}{'ratio':>8}")
    for name in rounds[0][0]:
        few_ms, many_ms = ([one[side][name] for one in rounds] for side in (0, 1))
        medians = [statistics.median(few_ms), statistics.median(many_ms)]
        ratio = medians[1] / medians[0]
        is_over = medians[1] > MOST_MS or ratio > MOST_TIMES
        text = "".join(f"{median:>14.1f}" for median in medians)
        print(f"{name:52}{text}{ratio:>8.2f}{'  too slow' if is_over else ''}")


def serve(runs: int) -> None:
    """In the child: fill, then open every page once on request and print how long each took."""
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("bench", password="bench")
    history = History(user)
    history.fill(runs)
    urls = pages(history.workflow) | admin_pages(history.workflow)
    check_complete(urls)
    client = Client(HTTP_HOST="localhost")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    for turn, line in enumerate(sys.stdin):
        if line.startswith("end"):
            return
        print(json.dumps(times_ms(client, urls, turn)))
        print("done", flush=True)


def pages(workflow: Workflow) -> dict[str, str]:
    """The addresses, with a run, an evaluation and a cursor from the middle of what is stored."""
    count = Run.objects.filter(workflow=workflow).count()
    run = Run.objects.get(workflow=workflow, number=count // 2)
    other = Run.objects.get(workflow=workflow, number=count // 2 - 1)
    node = run.nodes.order_by("id")[NODES_A_RUN // 2]
    cursor = Order.of("").cursor(run).replace("+", "%2B")
    half = EvalSuiteRun.objects.count() // 2
    suite_run, other_suite_run = EvalSuiteRun.objects.for_list()[half - 1 : half + 1]
    of_workflow, of_run, of_node = (
        f"/workflows/{workflow.slug}/",
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/nodes/{node.pk}/",
    )
    of_suite_run = f"/evals/runs/{suite_run.pk}/"
    of_soul_version = f"/souls/analyst/versions/{Soul.objects.get(slug='analyst').version}/"
    two_runs = urlencode({"run": [run.pk, other.pk]}, doseq=True)
    two_suite_runs = urlencode({"run": [suite_run.pk, other_suite_run.pk]}, doseq=True)
    return {
        "dashboard": "/",
        "dashboard, what runs now": "/dashboard/now/",
        "figures of 24 hours": "/dashboard/figures/?range=24h",
        "figures of 7 days": "/dashboard/figures/?range=7d",
        "figures of 30 days": "/dashboard/figures/?range=30d",
        "workflows": "/workflows/",
        "workflow": of_workflow,
        "block of a workflow": f"{of_workflow}block/?block=b2",
        "latest runs of a workflow": f"{of_workflow}now/",
        "trend of the workflow": f"{of_workflow}trend/",
        "trend of a block, 30 days": f"{of_workflow}trend/?block=b0&range=30d",
        "version": f"{of_workflow}versions/1/",
        "version, its document": f"{of_workflow}versions/1/workflow.yaml",
        "form of a run": f"{of_workflow}run/",
        "editor": f"{of_workflow}edit/",
        "editor of a new workflow": "/start/",
        "souls": "/souls/",
        "soul": "/souls/analyst/",
        "soul, its prompt": "/souls/analyst/prompt.txt",
        "version of a soul": of_soul_version,
        "version of a soul, its text": f"{of_soul_version}soul.txt",
        "assertion lab": "/assertions/",
        "assertion lab with a node": f"/assertions/?node={node.pk}",
        "assertion lab with a block": f"/assertions/?workflow={workflow.slug}&block=b2",
        "assertion lab, blocks": f"/assertions/blocks/?workflow={workflow.slug}",
        "evals": "/evals/",
        "eval suite": f"/evals/{workflow.slug}/",
        "evaluation": of_suite_run,
        "evaluation, one case": f"{of_suite_run}?case=case-1",
        "comparison of evaluations": f"{of_suite_run}compare/{other_suite_run.pk}/",
        "evaluations ticked to compare": f"/evals/{workflow.slug}/compare/?{two_suite_runs}",
        "runs": "/runs/",
        "runs, from the middle": f"/runs/?after={cursor}",
        "runs by score": "/runs/?sort=-score",
        "runs by cost": "/runs/?sort=cost",
        "runs by duration": "/runs/?sort=-duration",
        "runs of a workflow by cost": f"/runs/?workflow={workflow.slug}&sort=cost",
        "completed runs by score": "/runs/?status=completed&sort=-score",
        "manual runs by duration": "/runs/?source=manual&sort=-duration",
        "runs of a workflow": f"/runs/?workflow={workflow.slug}",
        "runs of a version": "/runs/?version=1",
        "runs with a number": "/runs/?number=17",
        "runs before a day": f"/runs/?until={run.created_at:%Y-%m-%d}",
        "failed runs": "/runs/?status=failed",
        "runs that did not pass": "/runs/?verdict=failed",
        "runs that could not be checked": "/runs/?verdict=error",
        "runs that passed": "/runs/?verdict=passed",
        "runs that passed by cost": "/runs/?verdict=passed&sort=cost",
        "runs of evals": "/runs/?source=eval",
        "runs with an error text": "/runs/?error=nothing",
        "runs that are shown, as they are now": f"/runs/rows/?{two_runs}&newer={cursor}",
        "runs ticked to compare": f"/runs/compare/?{two_runs}",
        "run": of_run,
        "run by its number": f"{of_workflow}runs/{run.number}/",
        "run, again while it runs": f"{of_run}live/",
        "run, its document": f"{of_run}workflow.yaml",
        "run, its inputs": f"{of_run}inputs.json",
        "run, its outputs": f"{of_run}outputs.json",
        "run as a case": f"{of_run}case.yaml",
        "comparison": f"{of_run}compare/{other.pk}/",
        "comparison of one block": f"{of_run}compare/{other.pk}/?only={node.node_id}",
        "block of a run": of_node,
        "block of a run, its output": f"{of_node}output.txt",
        "block of a run made into a case": f"{of_node}case/",
        "style guide": "/styleguide/",
        "documentation of the API": "/api/docs/",
    }  # fmt: skip


def admin_pages(workflow: Workflow) -> dict[str, str]:
    """The admin's first page, every list with its filters and some searches, the form of a new row, and a row."""
    of_workflow = f"/admin/workflows_app/workflow/{workflow.pk}/"
    found = {
        "admin": "/admin/",
        "admin, versions of a workflow": f"{of_workflow}versions/",
        "admin, version of a workflow": f"{of_workflow}versions/1/",
    }
    for model, page in admin.site._registry.items():
        names = model._meta.verbose_name_plural
        prefix = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        at = reverse(f"{prefix}_changelist")
        found[f"admin, {names}"] = at
        if isinstance(page, FactAdmin):
            found |= {f"admin, {names}, {text}": f"{at}?{text}" for text in questions(model, page)}
        elif model._meta.app_label != "axes":  # whose rows are facts as well
            found[f"admin, new one of {names}"] = reverse(f"{prefix}_add")
        if row := model._default_manager.order_by("-pk").first():
            found[f"admin, one of {names}"] = reverse(f"{prefix}_change", args=[row.pk])
    return found


def questions(model: type[models.Model], page: FactAdmin) -> Iterator[str]:
    """Each filter of a list with what most often no row has, and some searches."""
    for entry in page.list_filter:
        field = model._meta.get_field(entry if isinstance(entry, str) else entry[0])
        yield urlencode({f"{field.name}__exact": field.choices[-1][0] if field.choices else 0})
    for word in SEARCHED:
        yield urlencode({"q": word})


def check_complete(urls: dict[str, str]) -> None:
    """Fail if the site has a page that is not measured."""
    measured = {resolve(url.partition("?")[0]).route for url in urls.values()}
    missing = {route for route, methods in PAGES.items() if "GET" in methods} - measured - LEFT_OUT
    assert not missing, f"not measured: {sorted(missing)}"


def times_ms(client: Client, urls: dict[str, str], turn: int) -> dict[str, float]:
    """One round, in another order each time: Python's collector comes every so often, and would meet the same page."""
    times = dict.fromkeys(urls, 0.0)
    for name in random.Random(turn).sample(list(urls), len(urls)):
        began = time.perf_counter()
        response = client.get(urls[name], follow=True)
        times[name] = (time.perf_counter() - began) * 1000
        assert response.status_code == 200, (urls[name], response.status_code)
    return times


if __name__ == "__main__":
    main()
