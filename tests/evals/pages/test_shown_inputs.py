"""A key among a run's inputs reaches the run, and nobody's eyes."""

from __future__ import annotations

import pytest
from django.test import Client

from evals_app.suites.case_maker import case_yaml, propose_case
from tests.callers import caller, user_in
from tests.factories import make_workflow, run_now
from tests.html import squeezed
from workflows_app import services
from workflows_app.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-proj-" + "a1B2" * 12


@pytest.fixture
def run() -> Run:
    return run_now(make_workflow(), {"text": f"hello {KEY}"})


def test_the_run_and_its_repeat_get_the_inputs_as_given(run: Run) -> None:
    assert run.status == "completed"
    assert services.rerun(run, None).inputs == run.inputs == {"text": f"hello {KEY}"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/",
        "/api/runs/{pk}/",
        "/api/workflows/shout/runs/",
        "/runs/{pk}/",
        "/runs/{pk}/compare/{other}/",
        "/admin/workflows_app/run/{pk}/change/",
    ],
)
def test_nothing_that_shows_inputs_shows_the_key(path: str, run: Run) -> None:
    other = run_now(run.workflow, {"text": "hello"})
    address = path.format(pk=run.pk, other=other.pk)
    client = Client()
    client.force_login(user_in("admin"), "django.contrib.auth.backends.ModelBackend")
    response = (caller() if address.startswith("/api/") else client).get(address)
    assert response.status_code == 200
    assert "[redacted]" in squeezed(response)
    assert KEY not in squeezed(response)


def test_a_case_made_of_the_run_does_not_carry_the_key(run: Run) -> None:
    assert KEY not in case_yaml(run)
    assert KEY not in repr(propose_case(run.nodes.get()))
