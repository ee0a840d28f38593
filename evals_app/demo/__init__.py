"""The demo: some weeks of four teams' workflows, told by the engine and the evaluator themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.utils import timezone

from evals_app import suite_history, suites
from evals_app.demo import story
from evals_app.models import Regression
from workflows_app import clock, executors, services
from workflows_app.models import Run, Soul, Workflow, WorkflowVersion


def load_demo(progress: Callable[[int, int], None] | None = None, end: datetime | None = None) -> int:
    """Tell the story up to now; what an interrupted telling has told already is not told again."""
    told = list(story.moments(end or timezone.now()))
    runs = 0
    for number, moment in enumerate(told, start=1):
        with clock.telling(clock.StoryClock(moment.at)):
            runs += _happen(moment)
        if progress:
            progress(number, len(told))
    return runs


def _happen(moment: story.Moment) -> int:
    if moment.soul is not None:
        soul = Soul.objects.filter(slug=moment.slug).first() or Soul(slug=moment.slug)
        for name, value in moment.soul.items():
            setattr(soul, name, value)
        services.save_soul(soul)
        return 0
    if moment.yaml is not None:
        if not WorkflowVersion.objects.filter(workflow__slug=moment.slug, yaml=moment.yaml).exists():
            version = services.save_version(moment.slug, moment.yaml, message=moment.message, is_demo=True)
            if suite_history.cases_in(version.definition):
                suites.run_suite(version.workflow, version=version, origin="cli")
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
    return is_demo and Run.objects.filter(external_id__startswith=story.TOLD).count() < wanted


def landing_path() -> str:
    """Where a first visitor should look: the workflow whose prompt change made it worse."""
    found = Regression.objects.unresolved().filter(workflow__slug=story.PLANTED).exists()
    return f"/workflows/{story.PLANTED}/" if found else "/"
