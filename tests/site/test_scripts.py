"""What the scripts leave to the server."""

import re
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "static" / "js").glob("*.js"))
# How a number becomes text: a score, a duration or a cost would read otherwise than where the server wrote it.
FORMATS = re.compile(r"toFixed|toPrecision|toLocaleString|Intl\.NumberFormat|Math\.round\(")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_formats_no_number(script):
    assert FORMATS.findall(script.read_text()) == []


def test_html_is_swapped_in_one_script():
    swapping = re.compile(r"DOMParser|innerHTML|outerHTML|insertAdjacentHTML")
    found = {path.name for path in SCRIPTS if swapping.search(path.read_text())}
    assert found == {"swap.js"}
