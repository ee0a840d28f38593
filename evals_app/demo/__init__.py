"""The demo: some weeks of four teams' workflows, run and evaluated for real."""

from __future__ import annotations

from django.utils import timezone

from evals_app.cases.document import cases_in
from evals_app.demo import story
from evals_app.models import Regression
from evals_app.suites import running as suites
from workflows_app import clock, executors, services
from workflows_app.models import Run, Soul, Workflow, WorkflowVersion


def load_demo() -> int:
    """Make the demo's history up to now and count its new runs; what an interrupted call has made is kept."""
    runs = 0
    for moment in story.moments(timezone.now()):
        with clock.simulate(moment.at):
            runs += _play(moment)
    return runs


def _play(moment: story.Moment) -> int:
    if moment.soul is not None:
        soul = Soul.objects.filter(slug=moment.slug).first() or Soul(slug=moment.slug)
        for name, value in moment.soul.items():
            setattr(soul, name, value)
        services.save_soul(soul)
        return 0
    if moment.yaml is not None:
        if not WorkflowVersion.objects.filter(workflow__slug=moment.slug, yaml=moment.yaml).exists():
            version = services.save_version(moment.slug, moment.yaml, message=moment.message, is_demo=True)
            if cases_in(version.definition):
                suites.execute_suite(suites.begin(version.workflow, version=version, origin="cli"))
        return 0
    workflow = Workflow.objects.select_related("current_version__workflow").get(slug=moment.slug)
    if Run.objects.filter(workflow=workflow, external_id=moment.key).exists():
        return 0
    lease = services.start_held_run(workflow, moment.inputs, external_id=moment.key)
    executors.service().drive(lease)
    return 1


def is_needed() -> bool:
    """Whether this installation is empty, or its demo was interrupted."""
    if not Workflow.objects.exists():
        return True
    wanted = sum(chapter.runs for chapter in story.CHAPTERS)
    is_demo = Workflow.objects.filter(is_demo=True).exists()
    return is_demo and Run.objects.filter(external_id__startswith=story.RUN_KEY).count() < wanted


def landing_path() -> str:
    """Where a first visitor should look: the workflow whose prompt change made it worse."""
    found = Regression.objects.unresolved().filter(workflow__slug=story.PLANTED).exists()
    return f"/workflows/{story.PLANTED}/" if found else "/"
