"""What the pages on evals say is so."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
import yaml

from evals_app import cli
from evals_app.cli import evaluate
from workflows_app.engine.schema.document_keys import EVAL_CASE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DEMO = sorted((ROOT / "evals_app" / "demo" / "workflows").glob("*.yaml"))


def test_example_passes_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.search(r"```yaml\n(.*?)```", (DOCS / "evals.md").read_text(), re.DOTALL)
    assert text
    file = tmp_path / "invoice.yaml"
    file.write_text(text[1])
    assert cli.run("evaluate", [str(file)]) == 0
    assert "score 1.00 of 1 needed, 2 of 2 cases passed, 2 assertions" in capsys.readouterr().out


def test_page_explains_every_key_of_a_case() -> None:
    page = (DOCS / "evals.md").read_text()
    assert [key for key in EVAL_CASE.keys if f"`{key}`" not in page] == []


def test_page_lists_every_option_and_no_other() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    evaluate.add_arguments(parser)
    options = set(re.findall(r"--[a-z-]+", parser.format_usage()))
    table = set(re.findall(r"^\| `(--[a-z-]+)", (DOCS / "ci.md").read_text(), re.MULTILINE))
    assert table == options


def test_hook_runs_the_validator() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command, name = hook["entry"].split()
    assert (hook["id"], command, name in cli.COMMANDS) == ("runsight-validate", "runsight", True)
    assert re.search(hook["files"], "workflows/a.yaml")


@pytest.mark.parametrize(
    "file", [path for path in DEMO if "\neval:" in path.read_text()], ids=lambda path: path.stem
)
def test_cases_of_the_demo_pass(file: Path) -> None:
    assert cli.run("evaluate", [str(file)]) == 0
