"""`runsight evaluate` and `runsight validate`: exit codes, reports, and what a person sees."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from lxml import etree

from evals_app import cli
from evals_app.cli import evaluate as evaluate_module
from evals_app.cli.terminal import Progress, Screen
from evals_app.models import EvalSuiteRun
from tests.evals.suites.documents import FIXED, MIXED
from tests.factories import make_workflow
from tests.timing import wait_until
from tests.workflows.engine.sandbox.sandboxes import descendants
from workflows_app.models import Run

ROOT = Path(__file__).resolve().parents[3]
GOOD = FIXED.split("    - id: bad")[0]
BAD = FIXED.replace("threshold: 0.5", "threshold: 0.9")
NASTY = BAD.replace(
    "fixtures: {greet: Hello Bob}", 'fixtures: {greet: "a|b <i>\\x07\\u2028 ]]> %0A ::error:: \\"q\\" `x`"}'
)


def runsight(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The real program, from an empty environment."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """`file(text)`: a workflow file with that text."""

    def write(text: str, name: str = "greeter.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


# Exit codes


EXITS = [
    # text, arguments, exit code
    (GOOD, [], 0),
    (BAD, [], 1),
    (BAD, ["--case", "good"], 0),
    (GOOD.split("eval:")[0], [], 1),  # no assertion was executed
    (GOOD.replace("type: contains", "type: contians"), [], 2),
    (GOOD, ["--case", "god"], 2),
    (GOOD, ["--compare-to", "no-such-ref"], 2),
    (GOOD, ["--max-cost", "much"], 2),
    (GOOD, ["--unknown-option"], 2),
    (GOOD, ["missing.yaml"], 2),
    (GOOD, ["--junit", "/proc/nowhere/x.xml"], 2),
]


@pytest.mark.parametrize(("text", "arguments", "code"), EXITS)
def test_exit_code_says_passed_failed_or_could_not_run(
    file: Any, text: str, arguments: list[str], code: int
) -> None:
    try:
        found = cli.run("evaluate", [file(text), *arguments])
    except SystemExit as left:  # argparse
        found = left.code  # type: ignore[assignment]
    assert found == code


def test_program_itself_leaves_with_those_codes(file: Any, clean_environment: dict[str, str]) -> None:
    assert runsight("evaluate", file(GOOD), env=clean_environment).returncode == 0
    failed = runsight("evaluate", file(BAD), env=clean_environment)
    assert (failed.returncode, failed.stderr) == (1, "")
    missing = runsight("evaluate", "missing.yaml", env=clean_environment)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "runsight evaluate: there is no file missing.yaml.\n"


def test_slug_without_database_is_a_sentence(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    done = runsight("evaluate", "greeter", env=clean_environment, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "the database cannot be read" in done.stderr


def test_bug_is_a_sentence_and_code_two(
    file: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(evaluate_module, "report", explode)
    assert cli.run("evaluate", [file(GOOD)]) == 2
    assert capsys.readouterr().err == "runsight evaluate: could not run: RuntimeError: boom\n"


SLOW = GOOD.replace("fixtures: {greet: Hello Ada}", "inputs: {name: Ada}").replace(
    '          return "Hello', '          import time; time.sleep(30)\n          return "Hello'
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_leaves_with_two(
    file: Any, clean_environment: dict[str, str], number: int
) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "evaluate", file(SLOW)]
    process = subprocess.Popen(command, env=clean_environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: descendants(process.pid))  # the sandbox: the case is being executed
    assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "interrupted" in errors


def test_reader_that_goes_away_changes_no_code_to_another(
    file: Any, clean_environment: dict[str, str]
) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "evaluate", file(BAD)]
    process = subprocess.Popen(command, env=clean_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=30)
    assert process.returncode in (1, 2)
    assert b"Traceback" not in errors


def test_files_are_evaluated_without_django(file: Any) -> None:
    code = (
        "import sys; from evals_app import cli; cli.run('evaluate', [sys.argv[1]]); cli.run('validate', [sys.argv[1]]);"
        "heavy = {'django', 'asyncio', 'nltk', 'jsonschema', 'httpx2'} & set(sys.modules); sys.exit(str(heavy or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code, file(FIXED)], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.strip() == ""


# What a person sees


def test_failed_assertions_come_first_with_expected_against_measured(
    file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run("evaluate", [file(BAD)])
    lines = printed(capsys).splitlines()
    assert lines[0].startswith("✗ greeter")
    assert "score 0.62 of 0.9 needed, 1 of 2 cases passed" in lines[0]
    assert lines[3].split() == ["case", "block", "line", "expected", "measured"]
    assert re.fullmatch(r"  bad +greet +32 +contains \"Ada\" +\"Hello Bob\"", lines[4])
    assert lines[5].strip() == "Output does not contain 'Ada'."
    assert not any("good" in line for line in lines)


def test_output_that_is_no_terminal_has_no_colours_and_no_bar(
    file: Any, clean_environment: dict[str, str]
) -> None:
    done = runsight("evaluate", file(BAD), env=clean_environment)
    assert "\x1b" not in done.stdout + done.stderr
    assert "█" not in done.stderr


@pytest.mark.parametrize(("no_color", "has_colours"), [("", True), ("1", False)])
def test_terminal_shows_colours_and_bar_unless_switched_off(
    file: Any, clean_environment: dict[str, str], no_color: str, has_colours: bool
) -> None:
    own, theirs = pty.openpty()
    environment = {**clean_environment, "TERM": "xterm", "NO_COLOR": no_color}
    command = [sys.executable, str(ROOT / "manage.py"), "evaluate", file(BAD)]
    process = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(own, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(own)
    assert process.wait(timeout=30) == 1
    text = seen.decode()
    assert ("\x1b[31m" in text) is has_colours
    assert "2/2 cases, 1 failed" in text
    assert "✓ good" in text


def test_screen_never_paints_a_file() -> None:
    screen = Screen(io.StringIO())
    assert screen.paint("x", "failed") == "x"
    assert Progress(3, io.StringIO()).is_shown is False


def test_what_an_output_says_is_printed_and_not_obeyed(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = BAD.replace(
        "fixtures: {greet: Hello Bob}", 'fixtures: {greet: "\\e[2Ja\\a\\x9b1m ##[error]x\\r##vso[task]"}'
    )
    assert hostile != BAD
    assert cli.run("evaluate", [file(hostile), "--github"]) == 1
    said = printed(capsys)
    assert "## [error]x" in said
    assert not set("\x1b\x07\x9b\r") & set(said) and "##[" not in said


def test_a_painted_line_has_no_other_escapes_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen(stream)
    screen.line(screen.paint("a\x1b[31mb", "failed"))
    assert stream.getvalue() == "\x1b[31ma\ufffd[31mb\x1b[0m\n"


def test_faults_are_reported_with_file_and_line(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(BAD.replace("type: contains, value: Bob", "type: contians, value: Bob"))
    assert cli.run("evaluate", [path]) == 2
    assert printed(capsys).startswith(
        f"{path}:31: eval.cases[1].expected.greet[0].type: unknown assertion type"
    )


# Reports


def reports(file: Any, tmp_path: Path, text: str, *more: str) -> dict[str, str]:
    names = {"junit": "out/j.xml", "json": "out/j.json", "markdown": "out/m.md"}
    arguments = [part for name, path in names.items() for part in (f"--{name}", str(tmp_path / path))]
    cli.run("evaluate", [file(text), *arguments, *more])
    return {name: (tmp_path / path).read_text() for name, path in names.items()}


EMPTY = GOOD.split("eval:")[0]
LOW = GOOD.replace(
    "- {type: contains, value: Ada}", "- {type: bleu, value: Hello dear Ada, threshold: 0.1}"
).replace("0.5", "1")


@pytest.mark.parametrize(
    ("text", "failures", "errors"),
    [(GOOD, 0, 0), (BAD, 1, 0), (NASTY, 1, 0), (MIXED, 1, 0), (EMPTY, 1, 0), (LOW, 1, 0)],
    ids=["good", "bad", "nasty", "mixed", "empty", "low"],
)
def test_junit_is_valid_and_counts_what_it_holds(
    file: Any, tmp_path: Path, text: str, failures: int, errors: int
) -> None:
    tree = etree.fromstring(reports(file, tmp_path, text)["junit"].encode())
    schema = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))
    schema.assertValid(tree)
    assert len(tree.findall(".//testcase")) == int(tree.get("tests"))
    assert len(tree.findall(".//failure")) == int(tree.get("failures")) == failures
    assert len(tree.findall(".//error")) == int(tree.get("errors")) == errors


def test_junit_schema_refuses_what_is_not_junit() -> None:
    schema = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))
    assert not schema.validate(etree.fromstring("<testsuites><testsuite name='x'/></testsuites>"))


def test_junit_tells_errors_and_skipped_cases_apart(file: Any, tmp_path: Path) -> None:
    head, _, _ = MIXED.partition("eval:")
    cases = "eval:\n  cases:\n    - {id: a, expected: {ask: [{type: contains, value: x}]}}\n    - {id: b, expected: {ask: [{type: contains, value: x}]}}\n"
    text = (
        head.replace(
            "blocks:", "souls: {s: {provider: nobody}}\nblocks:\n  ask: {type: llm, soul_ref: s, prompt: hi}"
        )
        + cases
    )
    tree = etree.fromstring(reports(file, tmp_path, text, "--fail-fast", "--jobs", "1")["junit"].encode())
    etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd"))).assertValid(tree)
    assert [child.tag for case in tree.iter("testcase") for child in case] == ["error", "skipped"]
    assert "Unknown provider 'nobody'" in tree.find(".//error").get("message")


@pytest.mark.parametrize("text", [GOOD, NASTY, MIXED, EMPTY], ids=["good", "nasty", "mixed", "empty"])
def test_json_matches_its_published_schema(file: Any, tmp_path: Path, text: str) -> None:
    report = json.loads(reports(file, tmp_path, text)["json"])
    schema = json.loads((ROOT / "docs" / "schemas" / "evaluate.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)
    (suite,) = report["suites"]
    assert sum(suite["counts"].values()) == len(suite["cases"])


def test_markdown_shows_the_verdict_and_keeps_texts_in_their_cells(file: Any, tmp_path: Path) -> None:
    text = reports(file, tmp_path, NASTY)["markdown"]
    assert text.startswith("### ❌ Runsight evals did not pass\n")
    rows = [line for line in text.splitlines() if line.startswith("| bad ")]
    assert len(rows) == 2
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 7
        assert "\\<i\\>" in row


def test_github_annotations_stand_on_the_lines_of_the_assertions(
    file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(NASTY)
    cli.run("evaluate", [path, "--github"])
    marks = [line for line in printed(capsys).splitlines() if line.startswith("::")]
    lines = NASTY.splitlines()
    for mark in marks:
        found = re.fullmatch(r"::error file=([^,:]+),line=(\d+),title=Eval case bad::greet%?.*", mark)
        assert found, mark
        assert found[1] == path
        assert "type: contains" in lines[int(found[2]) - 1]
    assert len(marks) == 2


def test_github_annotates_faults_too(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(GOOD.replace("version:", "vresion:"))
    assert cli.run("validate", [path, "--github"]) == 1
    assert f"::error file={path},line=1,title=Invalid workflow::" in printed(capsys)


# Comparing


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository whose first commit holds the good and bad greeter."""
    folder = tmp_path / "repository"
    (folder / "flows").mkdir(parents=True)
    (folder / "flows" / "greeter.yaml").write_text(FIXED)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(folder)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        subprocess.run([*git, *arguments], check=True)
    return folder


def test_flips_since_a_git_ref_are_listed(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = repository / "flows" / "greeter.yaml"
    path.write_text(
        FIXED.replace("value: Ada}", "value: Eve}").replace("value: Ada, weight: 3", "value: Bob")
    )
    cli.run("evaluate", [str(path), "--compare-to", "HEAD", "--json", str(tmp_path / "j.json")])
    text = printed(capsys)
    assert text.index("good passed before, fails now") < text.index("bad failed before, passes now")
    report = json.loads((tmp_path / "j.json").read_text())
    assert [change["kind"] for change in report["suites"][0]["changes"]] == ["worse", "better"]


def test_file_that_is_new_since_the_ref_has_only_new_cases(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = repository / "flows" / "new.yaml"
    path.write_text(GOOD)
    assert cli.run("evaluate", [str(path), "--compare-to", "HEAD"]) == 0
    assert "good is new" in printed(capsys)


@pytest.mark.parametrize("ref", ["--output=/tmp/x", "HEAD:flows", "nope"])
def test_ref_that_is_none_is_refused(repository: Path, ref: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(repository / "flows" / "greeter.yaml")
    assert cli.run("evaluate", [path, f"--compare-to={ref}"]) == 2
    assert "git knows no such commit" in capsys.readouterr().err


# With a database


@pytest.mark.django_db
def test_slug_is_evaluated_from_the_database_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    make_workflow(MIXED, "greeter")
    assert cli.run("evaluate", ["greeter"]) == 0
    suite_run = EvalSuiteRun.objects.get()
    assert (suite_run.origin, suite_run.cases_done, Run.objects.filter(source="eval").count()) == (
        "cli",
        4,
        2,
    )
    make_workflow(MIXED.replace("value: Ada}", "value: Eve}"), "greeter")
    assert cli.run("evaluate", ["greeter", "--compare-to", str(suite_run.pk)]) == 0
    assert "good passed before, fails now" in printed(capsys)


@pytest.mark.django_db
def test_file_is_kept_only_when_asked(file: Any, tmp_path: Path) -> None:
    path = file(FIXED)
    cli.run("evaluate", [path])
    assert not EvalSuiteRun.objects.exists()
    cli.run("evaluate", [path, "--store", "--json", str(tmp_path / "j.json")])
    suite_run = EvalSuiteRun.objects.get()
    assert suite_run.workflow.slug == "greeter"
    assert json.loads((tmp_path / "j.json").read_text())["suites"][0]["stored_as"] == str(suite_run.pk)


@pytest.mark.django_db
def test_unknown_slug_could_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run("evaluate", ["nobody"]) == 2
    assert "neither a file nor a workflow 'nobody'" in capsys.readouterr().err


def test_management_commands_are_the_same(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import call_command

    for command, code in (("evaluate", 1), ("validate", 0)):
        with pytest.raises(SystemExit) as left:
            call_command(command, file(BAD))
        assert left.value.code == code


# Validate


@pytest.mark.parametrize(
    ("text", "code"), [(FIXED, 0), (FIXED.replace("id: bad", "id: good"), 1), ("", 1), ("a: [", 1)]
)
def test_validate_finds_faults(file: Any, text: str, code: int) -> None:
    assert cli.run("validate", [file(text)]) == code


def test_validate_is_quiet_about_valid_files_and_names_every_fault(
    file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = file(FIXED), file(FIXED.replace("type: code", "type: cdoe"), "bad.yaml")
    assert cli.run("validate", [good]) == 0
    assert printed(capsys) == ""
    assert cli.run("validate", [good, bad]) == 1
    assert [line.split(":")[0] for line in printed(capsys).splitlines()] == [bad, bad]
    assert cli.run("validate", [good, "missing.yaml"]) == 2
