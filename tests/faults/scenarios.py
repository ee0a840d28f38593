"""The faults: what is broken, when, and what is measured until all is well again."""

import os
import resource
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, connections
from django.db.models import F

from evals_app.models import BlockStatistics, Observation
from tests.faults.lab import SERVERS, STEPS, Lab, scenario
from tests.faults.stack import Clock, web, worker
from tests.faults.viewer import Viewer, token
from tests.services import free_port
from tests.timing import stays_the_same, wait_until
from tests.workflows.engine.providers.openai_server import OpenAIServer, slow
from workflows_app import executors, services
from workflows_app.models import Run, RunEvent, RunNode, RunStatus


@scenario
def worker_killed(lab: Lab) -> dict[str, Any]:
    """One of two workers is killed, again and again, while runs go on."""
    crew = [lab.started(worker(lab.home, f"worker{n}")) for n in range(2)]
    for one in crew:
        one.wait_ready()
    waits, deaths = [], 0
    while deaths < lab.size:
        if Run.objects.active().count() < 3:
            lab.start_runs(3)
        lab.wait_under_way(lab.runs)
        time.sleep(lab.chance.uniform(0, 0.4))
        held = {run.pk: run.owner for run in Run.objects.filter(status=RunStatus.RUNNING)}
        victim = lab.chance.randrange(2)
        crew[victim].kill()
        deaths += 1
        begun = time.monotonic()
        orphans = [pk for pk, owner in held.items() if f":{crew[victim].process.pid}:" in owner]
        for pk in orphans:
            lab.wait_taken_over(Run.objects.get(pk=pk), held[pk])
        if orphans:
            waits.append(time.monotonic() - begun)
        crew[victim] = lab.started(worker(lab.home, f"worker{victim}")).wait_ready()
    lab.wait_over()
    return {"kills": deaths, "recovery_s": waits}


@scenario
def worker_stopped(lab: Lab) -> dict[str, Any]:
    """A worker is asked to stop in the middle of a run; another goes on at once."""
    leaving = lab.started(worker(lab.home, "leaving")).wait_ready()
    runs = lab.start_runs(2)
    lab.wait_under_way(runs, blocks=2)
    begun = time.monotonic()
    code = leaving.stop()
    stopped_in = time.monotonic() - begun
    lab.started(worker(lab.home, "staying")).wait_ready()
    lab.wait_over()
    return {"exit_code": code, "stop_s": stopped_in, "takeovers": [run.fence for run in Run.objects.all()]}


@scenario
def message_redelivered(lab: Lab) -> dict[str, Any]:
    """The broker delivers messages again: of a run that is owned, and of one that is over."""
    lab.started(worker(lab.home)).wait_ready()
    runs = lab.start_runs(1)
    begun = time.monotonic()
    lab.wait_under_way(runs, blocks=0)
    taken_in = time.monotonic() - begun
    for _ in range(5):
        executors.wake(runs[0].pk)
    lab.wait_over()
    for _ in range(5):
        executors.wake(runs[0].pk)
    later = lab.start_runs(1)  # behind those in the queue
    lab.wait_over(later)
    return {"taken_s": taken_in, "fences": list(Run.objects.values_list("fence", flat=True))}


@scenario
def cancelled(lab: Lab) -> dict[str, Any]:
    """A run is cancelled from another process than the one that executes it."""
    crew = lab.started(worker(lab.home)).wait_ready()
    runs = lab.start_runs(1)
    lab.wait_under_way(runs)
    services.cancel_run(runs[0])
    lab.wait_over()
    crew.stop()  # whatever it still wrote of the run is written now
    return {"statuses": [run.status for run in Run.objects.all()]}


@scenario
def server_killed(lab: Lab) -> dict[str, Any]:
    """The broker, the channel layer or the database dies without a word and comes back a moment later."""
    crew = [lab.started(worker(lab.home, f"worker{n}")).wait_ready() for n in range(2)]
    waits = []
    (server,) = (one for name, one in SERVERS.items() if name == os.environ["FAULT_VICTIM"])
    for _ in range(lab.size):
        lab.start_runs(3)
        lab.wait_under_way(lab.runs)
        connections.close_all()
        server.kill()
        time.sleep(lab.chance.uniform(0.2, 2.0))
        server.start()
        connections.close_all()
        begun = time.monotonic()
        later = lab.start_runs(1)  # taken by somebody who has found the way back
        lab.wait_over(later, seconds=120)
        waits.append(time.monotonic() - begun)
    lab.wait_over(seconds=120)
    assert all(one.process.poll() is None for one in crew), "a worker did not survive"
    return {"kills": lab.size, "victim": os.environ["FAULT_VICTIM"], "recovery_s": waits}


@scenario
def web_killed(lab: Lab) -> dict[str, Any]:
    """The process that serves pages, and in a small installation executes, is killed while a viewer watches."""
    if settings.RUNSIGHT_EXECUTOR == "celery":
        lab.started(worker(lab.home)).wait_ready()
    port = free_port()
    site = lab.started(web(lab.home, port)).wait_ready()
    runs = lab.start_runs(2)
    viewer = Viewer(port, str(runs[0].pk), token())
    wait_until(lambda: bool(viewer.seqs), "the viewer sees something")
    waits, done = [], 0
    for _ in range(lab.size):
        if not Run.objects.active().exists():
            lab.start_runs(1)
        # One more block each time: a run that dies six times without one is given up, as it should be.
        wait_until(lambda before=done: _blocks_done() > before, "a block has finished")
        time.sleep(lab.chance.uniform(0, 0.6))
        done = _blocks_done()
        site.kill()
        begun = time.monotonic()
        site = lab.started(web(lab.home, port)).wait_ready()
        waits.append(time.monotonic() - begun)
    lab.wait_over()
    history = list(runs[0].events.values_list("seq", flat=True))
    wait_until(
        lambda: viewer.connects > 1 and viewer.seqs[-1:] == history[-1:], "the viewer is back and has all", 30
    )
    viewer.stop()
    return {"kills": lab.size, "recovery_s": waits, "viewer_lost": sorted(set(history) ^ set(viewer.seqs)),
            "viewer_doubled": len(viewer.seqs) - len(set(viewer.seqs)), "reconnects": viewer.connects - 1}  # fmt: skip


def _blocks_done() -> int:
    return sum(Run.objects.values_list("nodes_done", flat=True))


@scenario
def disk_full(lab: Lab) -> dict[str, Any]:
    """Nothing the executing process writes to a file arrives any more; then there is room again."""
    crew = lab.started(worker(lab.home)).wait_ready()
    runs = lab.start_runs(2)
    lab.wait_under_way(runs)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    before = resource.prlimit(crew.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    assert before == unlimited
    wait_until(lambda: stays_the_same(_blocks_done, 2), "no block finishes any more")
    resource.prlimit(crew.process.pid, resource.RLIMIT_FSIZE, unlimited)
    waited = lab.wait_over()
    return {"recovery_s": [waited], "survived": crew.process.poll() is None}


@scenario
def provider_hangs(lab: Lab) -> dict[str, Any]:
    """A model never answers: its runs fail in time or are cancelled, everybody else's go on."""
    with OpenAIServer(slow(3600)) as hanging:
        os.environ |= {"OPENAI_BASE_URL": hanging.url, "OPENAI_API_KEY": "sk-test"}
        lab.started(worker(lab.home, concurrency=6)).wait_ready()
        silent = services.save_version("silent", HANGING).workflow
        stuck = lab.start_runs(3, silent)
        wait_until(lambda: len(hanging.requests) == 3, "all three wait for the model")
        services.cancel_run(stuck[0])
        fine = lab.start_runs(2)
        begun = time.monotonic()
        lab.wait_over(fine)
        unhurt = time.monotonic() - begun
        lab.wait_over()
    rows = Run.objects.filter(workflow=silent).order_by("number")
    return {"statuses": [run.status for run in rows], "errors": [(run.error or {}).get("type") for run in rows],
            "others_done_in_s": unhurt}  # fmt: skip


HANGING = """\
version: "1.0"
souls:
  mute: {role: Mute, system_prompt: Say nothing., provider: openai, model_name: gpt-4o-mini}
blocks:
  ask:
    type: llm
    soul_ref: mute
    prompt: Hello?
    timeout_seconds: 8
    retry_config: {max_attempts: 1}
"""


@scenario
def host_lost(lab: Lab) -> dict[str, Any]:
    """A host is gone with its worker: nobody can see that its process is dead, only that it is silent."""
    lab.started(worker(lab.home, "here")).wait_ready()
    waits = []
    for number in range(lab.size):
        there = lab.started(worker(lab.home, f"there{number}", host=f"host{number}")).wait_ready()
        held = _held_by(lab, f"host{number}/")
        there.kill()
        waits.append(_wait_all_taken_over(lab, held))
    lab.wait_over()
    return {"kills": lab.size, "recovery_s": waits}


@scenario
def schema_changed(lab: Lab) -> dict[str, Any]:
    """A newer release migrates the database under a worker: columns are added, then one it writes goes away."""
    crew = lab.started(worker(lab.home)).wait_ready()
    tables = [model._meta.db_table for model in (Run, RunNode, RunEvent, Observation, BlockStatistics)]
    lab.wait_under_way(lab.start_runs(2))
    _alter(f"ALTER TABLE {table} ADD COLUMN later text NOT NULL DEFAULT ''" for table in tables)
    lab.wait_over(lab.start_runs(2))
    lab.wait_under_way(lab.start_runs(2), blocks=2)
    _alter(["ALTER TABLE workflows_app_runnode RENAME COLUMN prompt_hash TO hash_of_prompt"])
    wait_until(lambda: crew.text.count("prompt_hash") > 1, "the worker meets the missing column again")
    unfinished = Run.objects.active().count()
    _alter(["ALTER TABLE workflows_app_runnode RENAME COLUMN hash_of_prompt TO prompt_hash"])
    waited = lab.wait_over()
    return {"recovery_s": [waited], "unfinished": unfinished, "survived": crew.process.poll() is None}


def _alter(statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@scenario
def clock_jumped(lab: Lab) -> dict[str, Any]:
    """The clock that leases are compared with jumps an hour ahead, then an hour back; then the owner's host is lost."""
    here = lab.started(worker(lab.home, "here")).wait_ready()
    there = lab.started(worker(lab.home, "there", host="there")).wait_ready()
    lab.wait_under_way(lab.start_runs(3))
    _move_leases(-HOUR)  # a clock that goes forward leaves every lease in the past
    lab.wait_over()
    held = _held_by(lab, "there/")
    there.kill()
    _move_leases(HOUR)
    waited = _wait_all_taken_over(lab, held)
    lab.wait_over()
    assert here.process.poll() is None
    return {"kills": 1, "recovery_s": [waited]}


@scenario
def clock_of_a_worker_jumped(lab: Lab) -> dict[str, Any]:
    """The clock of one of two workers jumps while runs are on: an hour ahead, and the other one dies; an hour back,
    and it dies itself."""
    clock = Clock(lab.home / "clock")
    right = lab.started(worker(lab.home, "right"))
    waits = []
    for _ in range(lab.size):
        clock.set_wrong_by(0)
        wrong = lab.started(worker(lab.home, "wrong", clock=clock)).wait_ready()
        right.wait_ready()
        lab.wait_under_way(lab.start_runs(2))
        clock.set_wrong_by(HOUR.total_seconds())
        held = _held_by(lab, f":{right.process.pid}:")
        right.kill()
        waits.append(_wait_all_taken_over(lab, held))
        right = lab.started(worker(lab.home, "right")).wait_ready()
        lab.wait_under_way(lab.start_runs(2))
        clock.set_wrong_by(-HOUR.total_seconds())
        held = _held_by(lab, f":{wrong.process.pid}:")
        wrong.kill()
        waits.append(_wait_all_taken_over(lab, held))
    lab.wait_over()
    return {"kills": 2 * lab.size, "recovery_s": waits}


HOUR = timedelta(hours=1)


def _move_leases(jump: timedelta) -> None:
    Run.objects.filter(status=RunStatus.RUNNING).update(lease_expires_at=F("lease_expires_at") + jump)


def _held_by(lab: Lab, owner: str) -> dict[Any, str]:
    """Fresh runs that this process has, and will have for some blocks more; and their owner."""
    while True:
        fresh = lab.start_runs(2)
        lab.wait_under_way(fresh)
        rows = Run.objects.filter(pk__in=[run.pk for run in fresh], status=RunStatus.RUNNING)
        held = dict(rows.filter(nodes_done__lt=STEPS / 2, owner__contains=owner).values_list("pk", "owner"))
        if held:
            return held


def _wait_all_taken_over(lab: Lab, held: dict[Any, str]) -> float:
    """Until other processes have these runs; how long that took."""
    begun = time.monotonic()
    for pk, owner in held.items():
        lab.wait_taken_over(Run.objects.get(pk=pk), owner)
    return time.monotonic() - begun
