"""Server time of each page with 1,000 runs stored and with 20,000, or `--runs` of them; DATABASE_URL chooses where."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("RUNSIGHT_HOME", tempfile.mkdtemp(prefix="runsight-bench-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from fill import NODES_A_RUN, fill, stored_workflow  # noqa: E402

from evals_app.run_list import Order  # noqa: E402
from workflows_app import executors, services  # noqa: E402
from workflows_app.models import Run, RunNode, Workflow  # noqa: E402

FEW = 1_000
ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="how many are many; ten nodes each")
    sizes = (FEW, parser.parse_args().runs)
    call_command("migrate", verbosity=0)
    workflow = stored_workflow()
    for _ in range(3):  # real runs, so that there is history to show
        run = services.start_run(workflow, {})
        executors.service().execute(run.pk)
    executors.service().stop()
    user = User.objects.create_superuser("bench", password="bench")
    client = Client(HTTP_HOST="localhost")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    measured = []
    for size in sizes:
        fill(workflow, size)
        measured.append(medians_ms(client, pages(workflow)))
    print(f"{Run.objects.count():,} runs, {RunNode.objects.count():,} nodes; medians of {ROUNDS}, in ms")
    print(f"{'page':30}{sizes[0]:>10,}{sizes[1]:>10,}{'ratio':>8}")
    for name, few in measured[0].items():
        many = measured[1][name]
        print(f"{name:30}{few:>10.1f}{many:>10.1f}{many / few:>8.2f}")


def pages(workflow: Workflow) -> dict[str, str]:
    """The addresses, with a run and a cursor from the middle of what is stored."""
    count = Run.objects.filter(workflow=workflow).count()
    run = Run.objects.get(workflow=workflow, number=count // 2)
    other = Run.objects.get(workflow=workflow, number=count // 2 - 1)
    node = run.nodes.order_by("id")[NODES_A_RUN // 2]
    cursor = Order.of("").cursor(run).replace("+", "%2B")
    return {
        "dashboard": "/",
        "workflows": "/workflows/",
        "workflow": f"/workflows/{workflow.slug}/",
        "trend of the workflow": f"/workflows/{workflow.slug}/trend/",
        "trend of a block, 30 days": f"/workflows/{workflow.slug}/trend/?block=b0&range=30d",
        "version": f"/workflows/{workflow.slug}/versions/1/",
        "dashboard, what runs now": "/dashboard/now/",
        "figures of 24 hours": "/dashboard/figures/?range=24h",
        "figures of 7 days": "/dashboard/figures/?range=7d",
        "figures of 30 days": "/dashboard/figures/?range=30d",
        "souls": "/souls/",
        "assertion lab": "/assertions/",
        "evals": "/evals/",
        "runs": "/runs/",
        "runs, from the middle": f"/runs/?after={cursor}",
        "runs by score": "/runs/?sort=-score",
        "runs by cost": "/runs/?sort=cost",
        "runs by duration": "/runs/?sort=-duration",
        "runs of a workflow": f"/runs/?workflow={workflow.slug}",
        "runs of a version": "/runs/?version=1",
        "runs with a number": "/runs/?number=17",
        "failed runs": "/runs/?status=failed",
        "runs with an error text": "/runs/?error=nothing",
        "run": f"/runs/{run.pk}/",
        "run, again while it runs": f"/runs/{run.pk}/live/",
        "block of a run": f"/runs/{run.pk}/nodes/{node.pk}/",
        "comparison": f"/runs/{run.pk}/compare/{other.pk}/",
    }


def medians_ms(client: Client, urls: dict[str, str]) -> dict[str, float]:
    """Round by round over all pages, so that a slow moment of the machine falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in urls}
    for _ in range(ROUNDS):
        for name, url in urls.items():
            began = time.perf_counter()
            response = client.get(url)
            times[name].append((time.perf_counter() - began) * 1000)
            assert response.status_code == 200, (url, response.status_code)
    return {name: statistics.median(found) for name, found in times.items()}


if __name__ == "__main__":
    main()
