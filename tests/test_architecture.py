"""Which way things point, and where things may lie."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import SLOW

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
# What Django, a command line or another process finds by its name, so that no import names it.
FOUND_BY_NAME = {"__init__", "__main__", "admin", "apps", "settings", "tasks", "urls"}
# Modules that every Django project has, and that do not crowd a room.
DJANGO_HAS = FOUND_BY_NAME | {"asgi", "celery", "checks", "models", "signals", "views"}
FOUND_IN = {"commands", "migrations", "templatetags", "formats"}
FOUND_AT_RUN_TIME = {
    "runsight_site.environment.docs": "a command that writes the documents",
    "workflows_app.engine.providers.openai": "the registry imports every module of its package",
    "workflows_app.engine.schema.reference": "a command that writes the documents",
    "evals_app.assertions.reference": "a command that writes the documents",
}
# Modules that import each other in a circle, until somebody parts them. This set only shrinks.
KNOWN_CYCLES: set[frozenset[str]] = set()
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


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    return {name_of(path): path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))}


@cache
def imports() -> dict[str, set[str]]:
    """Which modules of ours each module imports when it runs, inside functions too."""
    found = {}
    for name, path in modules().items():
        tree = ast.parse(path.read_text(), str(path))
        only_for_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for statement in node.body
            for inner in ast.walk(statement)
        }
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        found[name] = set()
        for node in ast.walk(tree):
            if id(node) in only_for_types:
                continue
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = (
                    ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level])
                    if node.level
                    else ""
                )
                module = ".".join(part for part in (base, node.module) if part)
                # `from package import module` needs the module; `from package import name` the package.
                found[name] |= {
                    f"{module}.{alias.name}" if f"{module}.{alias.name}" in modules() else module
                    for alias in node.names
                }
        found[name] = (found[name] & modules().keys()) - {name}
    return found


def cycles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules that reach each other (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups = set()

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            place = stack.index(name)
            group = frozenset(stack[place:])
            del stack[place:]
            if len(group) > 1:
                groups.add(group)

    for name in graph:
        if name not in number:
            visit(name)
    return groups


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = cycles(imports())
    new, gone = found - KNOWN_CYCLES, KNOWN_CYCLES - found
    assert not new, "\n".join(", ".join(sorted(group)) for group in new)
    assert not gone, f"no longer a circle, take it off KNOWN_CYCLES: {gone}"


def test_no_rooms_of_workflows_import_each_other_in_a_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for name, others in imports().items():
        if name.startswith("workflows_app.") and not name.startswith("workflows_app.migrations"):
            room, *_ = name.split(".")[1:]
            used = {other.split(".")[1] for other in others if other.startswith("workflows_app.")}
            rooms.setdefault(room, set()).update(used - {room})
    assert not cycles(rooms)


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert cycles(graph) == {frozenset({"b", "c"})}


def test_the_engine_imports_nothing_above_it() -> None:
    wrong = {
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if name.startswith("workflows_app.engine") and not other.startswith("workflows_app.engine")
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_every_module_is_used() -> None:
    used = set().union(*imports().values())
    sources = "".join(path.read_text() for path in modules().values())
    unused = {
        name
        for name, path in modules().items()
        if name not in used
        and f'"{name}"' not in sources
        and f'"{name}.' not in sources  # a setting or a URL configuration names it
        and path.stem not in FOUND_BY_NAME
        and not FOUND_IN & set(path.parts)
        and name not in FOUND_AT_RUN_TIME
    }
    assert not unused
    assert FOUND_AT_RUN_TIME.keys() <= modules().keys()


def test_no_room_has_more_than_a_dozen_modules() -> None:
    rooms = [ROOT / app for app in APPS]
    rooms += [room for app in rooms for room in app.iterdir() if room.is_dir() and room.name != "migrations"]
    crowded = {
        str(room.relative_to(ROOT)): len(files)
        for room in rooms
        if len(files := [path for path in room.glob("*.py") if path.stem not in DJANGO_HAS]) > 12
    }
    assert not crowded


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


def test_what_is_called_slow_is_there() -> None:
    assert not [path for path in SLOW if not (ROOT / path).exists()]


def test_no_drawer_for_odds_and_ends() -> None:
    names = {"utils", "util", "core", "common", "helpers", "misc"}
    wrong = [path for app in APPS for path in (ROOT / app).rglob("*") if path.stem in names]
    assert not wrong


def test_top_level_holds_only_what_is_known() -> None:
    assert {path.parts[0] for path in tracked_files()} <= ALLOWED_TOP_LEVEL
