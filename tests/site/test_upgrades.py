"""A database of the first release, with runs in it, is brought up to date without losing a row."""

import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.stack import PROJECT, Program

OLD = textwrap.dedent("""
    import json, django
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor
    from django.utils import timezone

    FIRST = [("workflows_app", "0001_initial"), ("evals_app", "0001_initial")]
    executor = MigrationExecutor(connection)
    others = [leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] not in dict(FIRST)]
    executor.migrate(FIRST + others)
    old = MigrationExecutor(connection).loader.project_state(FIRST).apps
    Workflow, Version = old.get_model("workflows_app", "Workflow"), old.get_model("workflows_app", "WorkflowVersion")
    Run, Node, Event = (old.get_model("workflows_app", name) for name in ("Run", "RunNode", "RunEvent"))
    Observation = old.get_model("evals_app", "Observation")
    now = timezone.now()
    workflow = Workflow.objects.create(slug="old", name="Old")
    version = Version.objects.create(workflow=workflow, number=1, yaml=YAML, sha256="0" * 64)
    Workflow.objects.update(current_version=version, last_run_number=20)
    for number in range(1, 21):
        run = Run.objects.create(workflow=workflow, version=version, number=number, status="completed", created_at=now,
                                 started_at=now, finished_at=now, observed_at=now, last_seq=2, eval_score=0.5)
        node = Node.objects.create(run=run, node_id="shout", block_type="code", status="completed", output="HELLO",
                                   eval_score=0.5, eval_passed=True, evaluated_at=now)
        Event.objects.create(run=run, seq=1, event="run_started")
        Event.objects.create(run=run, seq=2, event="run_completed")
        Observation.objects.create(workflow=workflow, node_id="shout", number=number, run=run, run_number=number, at=now,
                                   score=0.5, passed=True, workflow_version=1)
""")
NEW = textwrap.dedent("""
    import json, django
    django.setup()
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    from evals_app.models import BlockStatistics, Observation
    from evals_app.services.observation import rebuild_statistics
    from workflows_app.models import Run, RunEvent, RunNode, Workflow
    from tests.factories import run_now
    workflow = Workflow.objects.get(slug="old")
    rebuild_statistics(workflow)
    fresh = run_now(workflow)
    print(json.dumps({
        "runs": list(Run.objects.order_by("number").values_list("number", "status", "eval_score")),
        "nodes": RunNode.objects.filter(output="HELLO").count(), "events": RunEvent.objects.exclude(run=fresh).count(),
        "observations": Observation.objects.count(), "count": BlockStatistics.objects.get().count,
        "delta": fresh.nodes.get().delta["baseline_run_count"],
    }))
""")
YAML = """\
version: "1.0"
blocks:
  shout:
    type: code
    code: "def main(data): return 'HELLO'"
    assertions:
      - {type: contains, value: HELLO}
"""


def python(script: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-c", f"YAML = {YAML!r}\n{script}"]
    variables = {
        **environment,
        "PYTHONPATH": str(PROJECT),
        "DJANGO_SETTINGS_MODULE": "runsight_site.settings",
    }
    done = subprocess.run(command, env=variables, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_first_schema_with_data_is_migrated_and_goes_on(clean_environment, database, request):
    environment = dict(clean_environment)
    if database == "postgres":
        environment["DATABASE_URL"] = request.getfixturevalue("postgres_url")
    python(OLD, environment)
    migrated = json.loads(python(NEW, environment).splitlines()[-1])
    assert migrated["runs"] == [[n, "completed", 0.5] for n in range(1, 21)] + [[21, "completed", 1.0]]
    assert (migrated["nodes"], migrated["events"], migrated["observations"]) == (21, 40, 21)
    assert (migrated["count"], migrated["delta"]) == (21, 20)


def test_two_hosts_that_start_at_once_migrate_once(clean_environment, postgres_url, tmp_path):
    def start(name: str) -> Program:
        home = tmp_path / name
        home.mkdir()
        environment = {
            **clean_environment,
            "RUNSIGHT_HOME": str(home),
            "DATABASE_URL": postgres_url,
            "RUNSIGHT_DEMO": "0",
        }
        return Program("up", Path(home / "log"), "Runsight is at", environment)

    programs = [start("one"), start("two")]
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Program.wait_ready, programs))
    finally:
        assert [program.stop() for program in programs] == [0, 0]
    assert sum("shown only this once" in program.text for program in programs) == 1, "one administrator"
