"""The demo shows the story it is meant to show."""

import pytest
from django.db.models import Count, Q

from evals_app import demo
from evals_app.demo import story
from evals_app.models import EvalSuiteRun, Observation, Regression, RegressionKind
from evals_app.monitoring.regressions import sentence
from tests.factories import make_workflow, run_now
from workflows_app.models import Run, RunNode, Workflow


def newest_text(slug: str) -> str:
    text = story.first_text(slug)
    for chapter in story.CHAPTERS:
        if chapter.slug == slug:
            for edit in chapter.edits:
                text = text.replace(edit.old, edit.new)
    return text


@pytest.mark.parametrize("text", [story.first_text(story.PLANTED), newest_text(story.PLANTED)])
def test_the_default_invoice_goes_red_only_after_the_planted_change(transactional_db, monkeypatch, text):
    monkeypatch.setattr("workflows_app.engine.providers.demo.MODELS", {"demo-small": (0.0, 0.0)})
    run = run_now(make_workflow(text, slug=story.PLANTED))
    results = run.nodes.get(node_id="extract").eval_results["assertions"]
    is_json = next(one for one in results if one["type"] == "is-json")
    assert is_json["passed"] is (story.CHATTY not in text)
    assert run.status == "completed"
    assert run.eval_passed is (story.CHATTY not in text)


def test_the_story_has_one_planted_regression_and_is_otherwise_calm(transactional_db):
    runs = demo.load_demo()
    assert runs == sum(chapter.runs for chapter in story.CHAPTERS)
    assert Run.objects.exclude(source="eval").count() <= 200
    assert not Run.objects.exclude(status="completed").exists()

    regression = Regression.objects.unresolved().get(kind=RegressionKind.ASSERTION)
    assert regression.suspected["workflow_version"] == 3
    assert "`is-json`" in sentence(regression)
    assert set(Regression.objects.values_list("workflow__slug", flat=True)) == {story.PLANTED}
    verdicts = EvalSuiteRun.objects.filter(workflow__slug=story.PLANTED).order_by("started_at")
    assert list(verdicts.values_list("version__number", "status")) == [
        (1, "passed"),
        (2, "passed"),
        (3, "failed"),
    ]
    assert demo.landing_path() == f"/workflows/{story.PLANTED}/"

    assert RunNode.objects.filter(node_id="page_on_call", status="completed").count() >= 3
    rates = dict(
        Observation.objects.exclude(workflow__slug=story.PLANTED)
        .values_list("workflow__slug")
        .annotate(rate=Count("id", filter=Q(passed=True)) * 100 / Count("id"))
    )
    assert all(rate >= 95 for rate in rates.values()), rates
    approved = Observation.objects.filter(node_id="refine")
    assert approved.filter(passed=True).count() > 0.8 * approved.count()

    assert not demo.is_needed()
    assert demo.load_demo() == 0
    assert Workflow.objects.filter(is_demo=False).count() == 0
