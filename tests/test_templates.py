"""Templates are read by people: they are formatted, and no line runs out of sight."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "templates"
LONGEST = 120


def test_no_line_of_a_template_is_longer_than_120_characters() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} characters"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST
    ]
    assert not long


def test_every_template_is_indented_as_make_format_would() -> None:
    command = [sys.executable, "-m", "djhtml", "--tabwidth", "2", "--check", str(TEMPLATES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
