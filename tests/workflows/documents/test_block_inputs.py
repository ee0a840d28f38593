"""The values a block started with, looked up again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_workflow
from workflows_app.documents.block_inputs import inputs_of
from workflows_app.models import Run, RunNode, Workflow
from workflows_app.security import credentials

DOCUMENT = """\
version: "1.0"
blocks:
  read: {type: code, code: "def main(data): return {}"}
  sum_up:
    type: code
    depends: read
    inputs: {total: blocks.read.json.total, whole: results.read, topic: inputs.topic, gone: blocks.read.json.nothing, me: run.number}
    code: "def main(data): return 1"
  tell: {type: code, depends: [read, sum_up], code: "def main(data): return 1"}
"""


@pytest.fixture
def run(db):
    workflow = Workflow.objects.select_related("current_version").get(pk=make_workflow(DOCUMENT, "given").pk)
    run = Run.objects.create(
        workflow=workflow, version=workflow.current_version, number=7, inputs={"topic": "cats"}
    )
    now = timezone.now()
    for minute, (name, output) in enumerate(
        [("read", '{"total": 5}'), ("sum_up", "6"), ("tell", "x"), ("read", '{"total": 9}')]
    ):
        RunNode.objects.create(
            run=run, node_id=name, block_type="code", status="completed", output=output, iteration=1 + minute // 3,
            started_at=now + timedelta(minutes=minute), finished_at=now + timedelta(minutes=minute, seconds=30),
        )  # fmt: skip
    return run


def given(run, name):
    node = run.nodes.filter(node_id=name).first()
    return inputs_of(run, node, run.version.definition)


def test_declared_inputs_have_the_values_of_that_time(run, django_assert_num_queries):
    credentials.redactor()  # what is secret is kept in memory once it was read
    with django_assert_num_queries(3):  # the node, what came before it, and its outputs
        found = given(run, "sum_up")
    assert found == {
        "total": 5,
        "whole": '{"total": 5}',
        "topic": "cats",
        "gone": "{{ blocks.read.json.nothing }}",
        "me": 7,
    }


def test_without_declared_ones_it_is_the_runs_and_what_led_here(run):
    assert given(run, "tell") == {"inputs": {"topic": "cats"}, "read": '{"total": 5}', "sum_up": "6"}
    assert given(run, "read") == {"inputs": {"topic": "cats"}}


def test_a_branch_of_a_dispatch_has_no_definition_of_its_own(run):
    assert inputs_of(run, RunNode(run=run, node_id="ask.one"), run.version.definition) == {}
