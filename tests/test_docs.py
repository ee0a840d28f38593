"""The documents point at what exists, and leave nothing out."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_index_lists_every_page_and_only_pages_that_exist() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text()))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}


def test_files_named_in_contributing_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:runsight_site|workflows_app|evals_app|tests|docs)/[\w/.]+)`", text)
    assert len(named) > 5
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


def test_names_of_the_architecture_are_in_the_files_it_says() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"^\| `(\w+)` \| `([\w/.]+)` \|$", text, re.MULTILINE)
    assert {"BaseBlockDef", "AssertionContext", "GradingResult", "ExecutionService", "EvalObserver"} <= dict(
        named
    ).keys()
    for name, path in named:
        assert re.search(rf"^(class|def) {name}\b|^{name} = ", (ROOT / path).read_text(), re.MULTILINE), name


def test_tests_named_in_the_documents_exist() -> None:
    named = {
        name
        for page in (ROOT / "docs").glob("*.md")
        for name in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text())
    }
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_architecture_shows_every_room() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    for app in ("runsight_site", "workflows_app", "evals_app"):
        branch = re.search(rf"^{app}/.*\n((?:  .*\n)+)", tree, re.MULTILINE)
        assert branch
        shown = set(re.findall(r"\b(\w+)/", branch[1]))
        rooms = {path.parent.name for path in (ROOT / app).glob("*/__init__.py")}
        assert rooms - {"management", "migrations", "templatetags", "formats"} <= shown, app
