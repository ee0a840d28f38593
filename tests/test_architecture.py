"""Which way things point, and where things may lie."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
APPS = ("runsight_site", "workflows_app", "evals_app")

# Code below the path may not import the names.
FORBIDDEN = [
    ("workflows_app", ("evals_app", "runsight_site", "tests")),
    ("workflows_app/engine", ("django", "channels", "rest_framework", "celery", "evals_app")),
    ("evals_app", ("runsight_site", "tests")),
    ("evals_app/assertions", ("django", "workflows_app", "runsight_site", "channels", "rest_framework")),
    ("evals_app/cases", ("django", "runsight_site", "channels", "rest_framework")),
    ("runsight_site", ("tests",)),
]
ALLOWED_TOP_LEVEL = {
    ".ci", ".env.example", ".gitignore", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "CHANGELOG.md", "CONTRIBUTING.md",
    "LICENSE", "Makefile", "README.md", "benchmarks", "docs", "evals_app",
    "manage.py", "pyproject.toml", "runsight_site", "static", "templates", "tests",
    "workflows_app",
}  # fmt: skip


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Every absolute module name the file imports, wherever in it, with its line."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize(("below", "forbidden"), FORBIDDEN)
def test_imports_point_one_way(below: str, forbidden: tuple[str, ...]) -> None:
    files = sorted((ROOT / below).rglob("*.py"))
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in files
        for line, module in imported_modules(path)
        if module.split(".")[0] in forbidden
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("package", ["workflows_app/engine", "evals_app/assertions", "evals_app/cases"])
def test_pure_package_loads_no_django_even_indirectly(package: str) -> None:
    files = [path.relative_to(ROOT).with_suffix("") for path in sorted((ROOT / package).rglob("*.py"))]
    modules = [".".join(path.parts).removesuffix(".__init__") for path in files]
    code = f"import sys, {', '.join(modules)}; sys.exit('django' in sys.modules and 'Django was loaded')"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr


def test_walker_sees_every_kind_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "evals_app" / "views.py"
    file.parent.mkdir()
    file.write_text(
        "import a.b\ndef f():\n    from .models import X\n    from workflows_app import services\n"
    )
    assert {module for _, module in imported_modules(file)} == {
        "a.b",
        "evals_app.models",
        "evals_app.models.X",
        "workflows_app",
        "workflows_app.services",
    }


def tracked_files() -> list[Path]:
    """What git knows of; none in an unpacked source archive."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [Path(line) for line in listed.stdout.splitlines()]


def test_no_drawer_for_odds_and_ends() -> None:
    names = {"utils", "util", "core", "common", "helpers", "misc"}
    wrong = [path for app in APPS for path in (ROOT / app).rglob("*") if path.stem in names]
    assert not wrong


def test_top_level_holds_only_what_is_known() -> None:
    assert {path.parts[0] for path in tracked_files()} <= ALLOWED_TOP_LEVEL
