"""The wheel carries everything and serves from an empty folder."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["runsight_site", "workflows_app", "evals_app", "templates", "static"]
FILES = ["pyproject.toml", "LICENSE"]


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A wheel built from a copy of the sources, unpacked into a folder that serves as site-packages."""
    source = tmp_path / "source"
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    (source / "README.md").write_text("# Runsight\n")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True, timeout=120)
    (wheel,) = tmp_path.glob("runsight_site-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    return tmp_path / "installed"


def test_wheel_has_every_file_and_starts_in_an_empty_folder(
    unpacked: Path, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    for folder in ("templates", "static"):
        assert files_of(unpacked / "runsight_site" / folder) == files_of(ROOT / folder)
    for package in ("runsight_site", "workflows_app", "evals_app"):
        missing = files_of(ROOT / package) - files_of(unpacked / package)
        assert not missing, f"not in the wheel: {package}/{sorted(missing)}"
    assert not (unpacked / "tests").exists()

    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**clean_environment, "PYTHONPATH": str(unpacked), "XDG_DATA_HOME": str(tmp_path / "data")}
    del environment["RUNSIGHT_HOME"]
    code = (
        "from django.core.management import execute_from_command_line as run; import sys;"
        "run(['runsight', 'check', '--fail-level', 'WARNING']); run(['runsight', 'migrate', '-v', '0']);"
        "from django.test import Client; c = Client(SERVER_NAME='localhost');"
        "assert b'<html' in c.get('/login/').content; assert c.get('/static/css/tokens.css').status_code == 200"
    )
    environment["DJANGO_SETTINGS_MODULE"] = "runsight_site.settings"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=empty, env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert not list(empty.iterdir())
    assert (tmp_path / "data" / "runsight" / "runsight.sqlite3").exists()


def files_of(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
