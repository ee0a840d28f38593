"""What is said about code when it is saved."""

import ast
import time

import pytest

from workflows_app.engine.sandbox.lint import CodeError, check_code

GOOD = "import json\n\ndef main(data):\n    return json.dumps(data)\n"

MAINS = [
    # code                                          line  in the message
    ("", 1, "no function main"),
    ("x = 1", 1, "no function main"),
    ("def helper(data): pass", 1, "no function main"),
    ("class A:\n    def main(data): pass", 1, "no function main"),
    ("main = lambda data: 1", 1, "no function main"),
    ("def main(): pass", 1, "takes nothing"),
    ("\ndef main(a, b): pass", 2, "takes a, b"),
    ("def main(*args): pass", 1, "takes *args"),
    ("def main(data, *, x=1): pass", 1, "exactly one parameter"),
    ("async def main(data): pass", 1, "not `async def`"),
    ("def main(data):\n    return (", 2, "not valid Python"),
    ("def main(data):\nreturn 1", 2, "not valid Python"),
    ("def main(data): return '\0'", 1, "not valid Python"),
    ("x = " + "(" * 500 + ")" * 500, 1, "too"),
    ("x = " + "-" * 100_000 + "1", 1, "too"),
]


@pytest.mark.parametrize(("code", "line", "message"), MAINS, ids=[row[0][:25] for row in MAINS])
def test_fault_is_found_with_its_line(code, line, message):
    (fault,) = check_code(code)
    assert fault.line == line
    assert message in fault.message


@pytest.mark.parametrize(
    "code",
    [GOOD, "def main(data, /): return 1", "def main(data={}): return 1", "x = '\\d'\ndef main(d): return x"],
)
def test_good_code_has_no_fault(code):
    assert check_code(code) == []


IMPORTS = [
    ("import os", ["json"], [(1, "'os'")]),
    ("import json, os, re", ["json", "re"], [(1, "'os'")]),
    ("import os.path", ["os"], []),
    ("import os.path", ["os.path"], []),
    ("import os", ["os.path"], [(1, "'os'")]),
    ("from os import path", ["os.path"], []),
    ("from os import path, sep", ["os.path"], [(1, "'os.sep'")]),
    ("from collections.abc import Mapping", ["collections"], []),
    ("import osx", ["os"], [(1, "'osx'")]),
    ("def main(data):\n    if data:\n        import socket", [], [(3, "'socket'")]),
    ("from . import x", ["x"], [(1, "'.'")]),
]


@pytest.mark.parametrize(("code", "allowed", "expected"), IMPORTS)
def test_imports_not_listed_are_named(code, allowed, expected):
    found = [fault for fault in check_code(code, allowed) if "import" in fault.message]
    assert [fault.line for fault in found] == [line for line, _ in expected]
    for fault, (_, name) in zip(found, expected, strict=True):
        assert name in fault.message


def test_every_fault_is_found_at_once_in_order():
    faults = check_code("import os\ndef main(): pass\nimport re\n", ["json"])
    assert [fault.line for fault in faults] == [1, 2, 3]
    assert all(isinstance(fault, CodeError) for fault in faults)


def test_no_list_means_no_lint():
    assert check_code("import os\ndef main(data): return 1", None) == []


def test_checking_costs_little_more_than_parsing():
    code = GOOD + "def helper(x):\n    return [y for y in x if y]\n" * 300

    def best(once):
        times = []
        for _ in range(5):
            started = time.thread_time()
            once()
            times.append(time.thread_time() - started)
        return min(times)

    assert best(lambda: check_code(code, ["json"])) < 4 * best(lambda: ast.parse(code))
