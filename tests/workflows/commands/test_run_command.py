"""`runsight run`: what it prints and how it exits."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from tests.factories import ONE_CODE_BLOCK, make_workflow
from workflows_app.management.commands import run as command
from workflows_app.models import Run, RunNode
from workflows_app.services import leases

OVER_ITS_CAP = """\
version: "1.0"
souls:
  s: {role: A, system_prompt: x, provider: demo, model_name: demo-small}
blocks:
  a: {type: llm, soul_ref: s, prompt: Write about cats}
  b: {type: llm, soul_ref: s, prompt: Write about dogs, depends: a}
limits: {token_cap: 20, on_exceed: warn}
"""
NAP = """\
version: "1.0"
blocks: {nap: {type: code, timeout_seconds: 300, code: "import time\\ndef main(data):\\n    time.sleep(250)"}}
"""


@pytest.fixture
def run_command(transactional_db, settings, capsys):
    """Run the command as a shell does: its exit code, and what it printed."""
    settings.RUNSIGHT_EXECUTOR = "local"

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises((SystemExit, CommandError)) as ended:
            call_command("run", *args)
        code = ended.value.code if isinstance(ended.value, SystemExit) else ended.value.returncode
        said = capsys.readouterr()
        return code, said.out, said.err + (str(ended.value) if isinstance(ended.value, CommandError) else "")

    return run


def test_passing_run_exits_0_and_watching_prints_each_event(run_command):
    make_workflow()
    code, out, _ = run_command("shout", "--watch")
    assert code == 0
    assert "· node started shout" in out and "✓ shout scored 1.00" in out
    assert "shout #1: completed, passed, score 1.00" in out


def test_failed_assertion_exits_1_and_says_which(run_command):
    make_workflow()
    code, out, _ = run_command("shout", "--input", "text=goodbye")
    assert code == 1
    assert "shout: contains: Output does not contain 'HELLO'" in out


def test_a_cap_that_only_warns_is_reported(run_command):
    make_workflow(OVER_ITS_CAP, "wordy")
    code, _, err = run_command("wordy")
    assert code == 0
    assert "  b: Limit of the run: " in err and "of the 20 tokens" in err


def test_file_is_saved_and_run(run_command, tmp_path: Path):
    (tmp_path / "from-file.yaml").write_text(ONE_CODE_BLOCK)
    code, out, _ = run_command(str(tmp_path / "from-file.yaml"))
    assert code == 0 and "from-file #1" in out
    assert Run.objects.get().workflow.slug == "from-file"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nothing",), "There is no workflow 'nothing'"),
        (("missing.yaml",), "There is no file missing.yaml"),
        (("shout", "--input", "text"), "use NAME=VALUE"),
        (("shout", "--input", "txet=x"), "Did you mean 'text'"),
    ],
)
def test_what_cannot_run_exits_2_with_a_sentence(run_command, args, said):
    make_workflow()
    code, _, err = run_command(*args)
    assert code == 2
    assert said in err
    assert not Run.objects.exists()


def test_number_for_a_declared_text_is_that_text(run_command):
    make_workflow()
    run_command("shout", "--input", "text=5")
    assert Run.objects.get().inputs == {"text": "5"}


def test_ctrl_c_ends_it_at_once_and_gives_the_run_back_with_its_child(run_command, monkeypatch):
    make_workflow(NAP, "nap")
    make_workflow('version: "1.0"\nblocks: {call: {type: workflow, workflow_ref: nap}}\n', "parent")
    pressed: list[float] = []

    def press_ctrl_c(seconds: float) -> None:
        time.sleep(seconds)
        if RunNode.objects.filter(node_id="nap", status="running").exists():
            pressed.append(time.monotonic())
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=press_ctrl_c))
    code, _, said = run_command("parent")
    assert code == 130
    assert "is not cancelled" in said
    assert time.monotonic() - pressed[0] < 6
    parent = Run.objects.get(workflow__slug="parent")
    assert list(leases.claimable((), limit=5)) == [parent.pk]
