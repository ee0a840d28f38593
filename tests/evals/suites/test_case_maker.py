"""A run node becomes an eval case that passes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evals_app.suites.case_maker import propose_case, save_case
from tests.factories import make_workflow, run_now, run_suite
from workflows_app.models import Run, RunNode, Workflow
from workflows_app.services import Refused, Stale

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = """\
version: "1.0"  # kept
id: greeter
interface:
  inputs:
    - {name: name, type: string, required: true}
    - {name: title, type: string}
souls:
  writer: {role: Writer, provider: demo, model_name: demo-small, max_tokens: 200}
blocks:
  look_up:
    type: code
    code: |
      def main(data):
          return {"name": data["inputs"]["name"], "visits": [1, 2]}
  greet:
    type: llm
    soul_ref: writer
    depends: look_up
    prompt: "Summarize in one sentence: {{ look_up.json.name }} visited us."
    assertions:
      - {type: not-equals, value: ""}
      - {type: contains, value: "never to be found"}
      - {type: latency, threshold: 600000}
  count:
    type: code
    depends: greet
    code: |
      def main(data):
          return len(data["greet"])
"""


def node_of(run: Run, node_id: str) -> RunNode:
    return RunNode.objects.select_related("run__workflow__current_version", "run__version__workflow").get(
        run=run, node_id=node_id
    )


@pytest.fixture
def run() -> Run:
    return run_now(make_workflow(TEXT, "greeter"), {"name": "Ada"})


def test_case_has_the_inputs_the_outputs_before_it_and_the_assertions_that_passed(run: Run) -> None:
    proposal = propose_case(node_of(run, "greet"))
    assert proposal.case == {
        "id": "greet-run-1",
        "description": "From run #1.",
        "inputs": {"name": "Ada"},
        "fixtures": {"look_up": {"name": "Ada", "visits": [1, 2]}},
        "expected": {
            "greet": [{"type": "not-equals", "value": ""}, {"type": "latency", "threshold": 600000}]
        },
    }
    assert proposal.yaml_text_new.startswith(TEXT)
    assert all(line.startswith(("+", "-", " ", "@")) for line in proposal.diff.splitlines())
    assert any("failed in this run" in note for note in proposal.notes)
    assert Workflow.objects.get().current_version.yaml == TEXT  # type: ignore[union-attr]


def test_saved_case_passes_and_the_next_one_stands_below_it(run: Run) -> None:
    version = save_case(propose_case(node_of(run, "greet")))
    assert (version.number, version.message) == (2, "Add eval case greet-run-1 from greeter #1")
    second = propose_case(node_of(run, "greet"))
    assert second.case_id == "greet-run-1-2"
    save_case(second)
    save_case(propose_case(node_of(run, "count")))
    save_case(propose_case(node_of(run, "greet"), freeze_output=True, case_id="frozen"))
    suite_run = run_suite(Workflow.objects.get())
    assert {row.case_id: row.status for row in suite_run.results.all()} == {
        "greet-run-1": "passed",
        "greet-run-1-2": "passed",
        "count-run-1": "passed",
        "frozen": "passed",
    }
    frozen = suite_run.results.get(case_id="frozen")
    assert (frozen.run, frozen.details["executed"]) == (None, False)


def test_block_without_assertions_is_asked_the_least(run: Run) -> None:
    (asked,) = propose_case(node_of(run, "count")).case["expected"]["count"]
    assert asked == {"type": "equals", "value": node_of(run, "count").output}


def test_case_saved_over_somebody_elses_version_is_refused(run: Run) -> None:
    proposal = propose_case(node_of(run, "greet"))
    make_workflow(TEXT + "# changed\n", "greeter")
    with pytest.raises(Stale):
        save_case(proposal)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"status": "failed"}, "Only a completed block makes a case; greet has failed."),
        ({"node_id": "greet.branch"}, "is a branch"),
        ({"node_id": "gone"}, "has no block 'gone'"),
    ],
)
def test_node_that_makes_no_case_is_refused(run: Run, change: dict[str, Any], sentence: str) -> None:
    node = node_of(run, "greet")
    for name, value in change.items():
        setattr(node, name, value)
    with pytest.raises(Refused, match=sentence):
        propose_case(node)


def test_loop_is_reported_by_the_blocks_inside_it() -> None:
    text = """\
version: "1.0"
id: rounds
blocks:
  step: {type: code, code: "def main(data):\\n    return 'round ' + str(data['round'])"}
  again: {type: loop, inner_block_refs: [step], max_rounds: 2}
  after: {type: code, depends: again, code: "def main(data):\\n    return data['step'] + ' done'"}
"""
    run = run_now(make_workflow(text, "rounds"))
    proposal = propose_case(node_of(run, "after"))
    assert proposal.case["fixtures"] == {"step": "round 2"}
    assert proposal.case["expected"] == {"after": [{"type": "equals", "value": "round 2 done"}]}
    save_case(proposal)
    assert run_suite(Workflow.objects.get()).status == "passed"


def test_route_that_the_fixtures_do_not_take_is_noted() -> None:
    text = """\
version: "1.0"
blocks:
  pick:
    type: code
    code: "def main(data): return 'to the right'"
    exit_conditions:
      - {exit: left, condition: {eval_key: pick.output, operator: contains, value: left}}
      - {exit: right, default: true}
  left: {type: code, code: "def main(data): return 1"}
  right: {type: code, code: "def main(data): return 2"}
workflow: {entry: pick, conditional_transitions: [{from: pick, left: left, right: right}]}
"""
    node = node_of(run_now(make_workflow(text, "fork")), "right")
    assert propose_case(node).notes == []
    node.node_id = "left"
    assert any("no route leads to left" in note for note in propose_case(node).notes)


# The command


def add_case(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("add_case", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_command_shows_the_diff_and_saves_only_when_confirmed(run: Run) -> None:
    shown, message = add_case(str(run.pk), "--node", "greet")
    assert "+    - id: greet-run-1" in shown
    assert "Nothing was saved" in message
    assert Workflow.objects.get().versions.count() == 1
    _, message = add_case("greeter#1", "--node", "greet", "--id", "mine", "--yes")
    assert "greeter v2 has the case mine." in message


def test_command_changes_a_file_instead(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "greeter.yaml"
    file.write_text(TEXT + "# my own\n")
    add_case("greeter#1", "--node", "count", "--file", str(file), "--yes")
    assert file.read_text().startswith(TEXT + "# my own\n" + "eval:\n  cases:\n    - id: count-run-1\n")
    assert Workflow.objects.get().versions.count() == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["greeter#9", "--node", "greet"], "There is no run 'greeter#9'"),
        (["nonsense", "--node", "greet"], "There is no run 'nonsense'"),
        (["greeter#1", "--node", "gret"], "it has count, greet, look_up"),
        (["greeter#1", "--node", "greet", "--file", "/nowhere/x.yaml"], "/nowhere/x.yaml"),
    ],
)
def test_command_that_cannot_says_why(run: Run, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as error:
        add_case(*arguments)
    assert error.value.returncode == 2
